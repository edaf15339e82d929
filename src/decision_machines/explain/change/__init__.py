"""What would have changed the answer.

`goals` says which answers count, and `goal_functions` what sums over leaves can prove of them;
`moves` says what may change and how far that is; `nearest_answer` searches one tree exactly and a
forest between two bounds; `counterfactual` puts them together.
"""
