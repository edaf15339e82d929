"""Estimators with scikit-learn's contract, on top of the train room.

They need scikit-learn, which is imported here and nowhere below.
"""
