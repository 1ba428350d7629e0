"""The conformance suite: cases as data, one interpreter, and the servers it can be pointed at.

`cases/` holds what must happen, `interpreter.py` plays one case through an injected transport and clock,
`expectations.py` judges what is there.  `simulation.py` runs them on virtual time in this process,
`__main__.py` against any API server named by a kubeconfig.
"""
