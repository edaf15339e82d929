"""The serve room: machines behind HTTP, in the Open Inference Protocol (v2, JSON).

`tensors` reads requests and writes answers, `models` holds the machines and reads their files again
when they change, `batching` answers single rows that arrive together in one call, `metrics` counts,
`app` is the ASGI application that ties them, `server` runs it on uvicorn. `dm serve` starts it.
"""

from __future__ import annotations

from .app import App
from .limits import Limits
from .models import Model, Models
from .server import serve

__all__ = ["App", "Limits", "Model", "Models", "serve"]
