#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the lanes of lanes.toml one after the other and prints one table at the end.

A lane fails when a step fails, when fewer tests ran than its minimum, or when a test was skipped
without saying why. Tests are counted from ctest's JUnit report, not from its text.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES_OF_A_FAILURE = 40
NOT_RUN = 77


class LaneFailure(Exception):
    """Why a lane failed, in words."""


class LaneNotRun(Exception):
    """A script said that this machine has not what the lane needs."""


class LaneResult:
    def __init__(self, name):
        self.name = name
        self.ran = 0
        self.failures = []
        self.skips = []
        self.seconds = 0.0
        self.failure = ""
        self.not_run = ""


def run(command, environment=None, allow_failure=False):
    print("+ " + " ".join(command), flush=True)
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}).returncode
    if code != 0 and not allow_failure:
        raise LaneFailure(f"`{' '.join(command)}` exited with {code}")
    return code


def skip_reason(case):
    """What the test said: GoogleTest prints the reason before the result, other programs print a
    line that begins with `skipped:`. A skip without a reason is a failure."""
    text = (case.findtext("system-out") or "") + (case.findtext("skipped") or "")
    match = re.search(r"Skipped\n(.*?)(?:\n\n|\n\[|\Z)", text, re.DOTALL) or re.search(r"^skipped: (.+)$", text, re.MULTILINE)
    return match.group(1).strip().splitlines()[0] if match and match.group(1).strip() else ""


def read_report(path, result):
    if not path.exists():
        raise LaneFailure("ctest wrote no report: no test was found")
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status", "")
        if status == "run":
            result.ran += 1
        elif status == "fail":
            result.failures.append((case.get("name"), case.findtext("system-out") or ""))
        else:
            result.skips.append((case.get("name"), skip_reason(case)))


def run_preset(lane, result):
    preset = lane["preset"]
    build = ROOT / "build" / preset
    launcher = shutil.which("ccache")
    configure = ["cmake", "--preset", preset]
    if launcher:
        configure += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX")]
    run(configure)
    targets = lane.get("targets", [])
    run(["cmake", "--build", "--preset", preset, *(["--target", *targets] if targets else [])])
    report = build / "ctest-report.xml"
    report.unlink(missing_ok=True)
    jobs = str(os.cpu_count() or 2)
    code = run(
        ["ctest", "--preset", preset, "-j", jobs, "--output-junit", str(report), *lane.get("ctest", [])],
        lane.get("environment"),
        allow_failure=True,
    )
    read_report(report, result)
    for name, reason in result.skips:
        print(f"skipped: {name}: {reason or 'NO REASON GIVEN'}")
    if result.failures:
        raise LaneFailure("failed: " + ", ".join(name for name, _ in result.failures))
    if code != 0:
        raise LaneFailure(f"ctest exited with {code}")
    unexplained = [name for name, reason in result.skips if not reason]
    if unexplained:
        raise LaneFailure("skipped without a reason: " + ", ".join(unexplained))
    if result.ran < lane["minimum_tests"]:
        raise LaneFailure(f"{result.ran} tests ran, at least {lane['minimum_tests']} have to")


def run_script(lane):
    """Exit code 77 is "cannot be run here", and the script has said why; anything else is a result."""
    code = run(lane["command"], lane.get("environment"), allow_failure=True)
    if code == NOT_RUN:
        if lane.get("may_not_run", False):
            raise LaneNotRun("this machine has not what it needs; the reason is above")
        raise LaneFailure("it was not run, and it has to be")
    if code != 0:
        raise LaneFailure(f"`{' '.join(lane['command'])}` exited with {code}")


def run_lane(lane):
    result = LaneResult(lane["name"])
    print(f"\n=== lane {lane['name']} ===", flush=True)
    begin = time.monotonic()
    try:
        if lane["kind"] == "preset":
            run_preset(lane, result)
        else:
            run_script(lane)
    except LaneNotRun as reason:
        result.not_run = str(reason)
        print(f"lane {lane['name']} not run: {reason}", flush=True)
    except LaneFailure as failure:
        result.failure = str(failure)
        print(f"lane {lane['name']} failed: {failure}", flush=True)
    result.seconds = time.monotonic() - begin
    return result


def print_failures(results):
    """The end of what each failed test printed, once more at the end of the log, where the log of a
    long run is still read."""
    for result in results:
        for name, output in result.failures:
            print(f"\n--- {result.name}: {name}")
            print("\n".join(line[:400] for line in output.splitlines()[-LINES_OF_A_FAILURE:]))


def choose(lanes, arguments):
    if arguments == ["--full"]:
        return lanes
    if not arguments:
        return [lane for lane in lanes if lane["required"]]
    known = {lane["name"]: lane for lane in lanes}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        sys.exit(f"ci/test: no lane {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[name] for name in arguments]


def main():
    lanes = tomllib.loads((ROOT / "ci" / "lanes.toml").read_text())["lane"]
    chosen = choose(lanes, sys.argv[1:])
    results = [run_lane(lane) for lane in chosen]
    print_failures(results)
    print("\nlane            ran  failed  skipped  seconds  result")
    for result in results:
        print(
            f"{result.name:<14} {result.ran:>4}  {len(result.failures):>6}  {len(result.skips):>7}  {result.seconds:>7.0f}  "
            + (f"FAILED: {result.failure}" if result.failure else f"NOT RUN: {result.not_run}" if result.not_run else "ok")
        )
    for lane in lanes:
        if lane not in chosen:
            print(f"{lane['name']:<14} not run (optional; ci/test --full or ci/test {lane['name']})")
    failed_lanes = [result for result in results if result.failure]
    failed = sum(len(result.failures) for result in results) + sum(1 for r in failed_lanes if not r.failures)
    print(
        f"{sum(result.ran for result in results)} passed, {failed} failed, "
        f"{sum(len(result.skips) for result in results)} skipped"
    )
    sys.exit(1 if failed_lanes else 0)


if __name__ == "__main__":
    main()
