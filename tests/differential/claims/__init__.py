"""Random volumes, devices and claims beside the stock scheduler (`scripts/sim --differential --claims`).

One pod after the other comes to a few nodes with devices and volumes.  A slow checker says of every node
whether it could take the pod; both schedulers must bind where it can be, and what they chose must be allowed.
"""
