"""Run the cases against a live API server with some scheduler behind it.

    python -m tests.conformance KUBECONFIG [FILE…] [--scheduler-name NAME] [--scheduler-control COMMAND]

The cluster is emptied before every case.  COMMAND is called with the word `stop` or `start`; without it,
cases that restart the scheduler are skipped, as are those whose `needs` the server does not serve.  Exit
code 1 if a case failed or none ran.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from tests.conformance.case import CASE_FILES, Case, load_cases
from tests.conformance.clean_slate import clear
from tests.conformance.https import HttpsTransport, RealClock
from tests.conformance.interpreter import CaseFailed, Interpreter, Options
from tests.conformance.left_out import LEFT_OUT, NOT_SERVED
from tests.conformance.server import Api, SchedulerControl

_CONTROL_TIMEOUT_S = 120


def main() -> int:
    arguments = _parse_arguments()
    api, clock = Api(HttpsTransport(arguments.kubeconfig)), RealClock()
    control = _control_of(arguments.scheduler_control)
    cases = [case for file in arguments.files for case in load_cases(file)]
    if arguments.only:
        cases = [case for case in cases if case.id in arguments.only.split(",")]
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    made_paths: list[str] = []
    for case in cases:
        if lacking := _lacking(case, api, control, stock=arguments.stock):
            counts["skipped"] += 1
            print(f"skip {case.id:8}        {case.title}: {lacking}", flush=True)
            continue
        clear(api, clock, made_paths)
        interpreter = Interpreter(api, clock, _options_of(case, arguments), control)
        began_s = clock.now_s()
        fault = _fault_of(interpreter, case)
        made_paths = interpreter.made_paths
        counts["failed" if fault else "passed"] += 1
        word = "FAIL" if fault else "ok  "
        print(f"{word} {case.id:8} {clock.now_s() - began_s:5.1f}s {case.title}", flush=True)
        if fault:
            print(f"     {fault}", flush=True)
        elif interpreter.unmet:
            print(f"     would be better: {'; '.join(interpreter.unmet)}", flush=True)
    clear(api, clock, made_paths)
    print(", ".join(f"{count} {word}" for word, count in counts.items() if count or word != "skipped"))
    return 1 if counts["failed"] or not counts["passed"] else 0


def _options_of(case: Case, arguments: argparse.Namespace) -> Options:
    return Options(
        scheduler_name=arguments.scheduler_name,
        stock=arguments.stock,
        leaves_out_right=case.id in arguments.without_right.split(","),
        compare_texts=arguments.stock or arguments.texts,
    )


def _fault_of(interpreter: Interpreter, case: Case) -> str | None:
    try:
        interpreter.run(case)
    except CaseFailed as error:
        return str(error)
    return None


def _lacking(case: Case, api: Api, control: SchedulerControl | None, *, stock: bool) -> str:
    """Why this case cannot run here; empty when it can."""
    if not stock and case.id in LEFT_OUT and case.id not in NOT_SERVED:
        return LEFT_OUT[case.id]
    if unserved := [path for path in case.needs if not api.serves(path)]:
        return f"the server does not serve {', '.join(unserved)}"
    if case.restarts_scheduler and control is None:
        return "needs --scheduler-control"
    return ""


def _control_of(command: str | None) -> SchedulerControl | None:
    if command is None:
        return None
    words = shlex.split(command)

    def control(order: str, /) -> None:
        subprocess.run([*words, order], check=True, timeout=_CONTROL_TIMEOUT_S)

    return control


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("files", type=Path, nargs="*", default=sorted(CASE_FILES.glob("*.yaml")))
    parser.add_argument("--scheduler-name", default="muster", help="whose pods the cases make")
    parser.add_argument("--scheduler-control", help="command that stops and starts the scheduler")
    parser.add_argument("--only", default="", help="ids of cases, comma between them")
    parser.add_argument("--stock", action="store_true", help="the scheduler is kube-scheduler")
    parser.add_argument("--without-right", default="", help="ids of cases whose `right` steps are left out")
    parser.add_argument("--texts", action="store_true", help="compare the scheduler's words, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
