"""Names under `muster.dev/` that are read on pods; what is read on groups only its dialect knows."""

from muster.cluster.gpu_annotations import GPU_INDEX, GPU_MILLI

# What a pod on a simulated node does: `controllers/kubelet.py`.
RUN_SECONDS = "muster.dev/run-seconds"
EXIT_CODE = "muster.dev/exit-code"
STOP_SECONDS = "muster.dev/stop-seconds"

FOR_USERS = (GPU_MILLI, RUN_SECONDS, EXIT_CODE, STOP_SECONDS)
ON_PODS = (*FOR_USERS, GPU_INDEX)
