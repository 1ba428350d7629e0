"""The one table of cases that are left for later: id → reason.

Where the reason is a kind that the embedded server does not serve, the case's own `needs` say the same, and
it is played on a server that has the kind.
"""

from pathlib import Path

import yaml


def _load() -> dict[str, str]:
    table = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {case_id: reason for reason, ids in table.items() for case_id in ids}


LEFT_OUT = _load()
NOT_SERVED = {case_id for case_id, reason in LEFT_OUT.items() if "by the embedded server" in reason}
