"""What features, and training rows, do to the answers.

`delta` redoes only what a moved feature can change; `inspection` (partial dependence, individual
curves) and `importance` rest on it. `kernel` compares rows by the leaves that they share.
"""
