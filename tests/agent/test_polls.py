"""Only a call that asks for a state, and is told that something goes on, is a look at what is under way."""

from __future__ import annotations

import json
import time

import pytest

from leporello.agent.polls import LONGEST_LOOK, is_under_way
from leporello.agent.repeats import Repeats
from leporello.messages import ToolCall
from leporello.tools.base import ToolResult
from tests.agent.workflows import Row, ran, used


def under_way(row: Row) -> bool:
    asked, result, seconds = row
    return is_under_way(asked, result, failed=result.is_error or bool(result.details.get("exit_code")), seconds=seconds)


LOOKS = """
kubectl get pods -n web
kubectl -n web get pods | grep api
kubectl rollout status deploy/web
docker ps --format '{{.Names}} {{.Status}}'
docker compose -f x.yml ps
cd /srv && docker compose ps 2>/dev/null
gh run view 7 --json status
A=1 gh run list
gh pr checks 12
curl -sf localhost:8080/health
curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:3000/
curl -s https://api.example/v1/jobs/17 | jq -r .status
curl -s "https://api.example/deploy/status"
timeout 5 curl -s localhost:3000
ps aux | grep train
systemctl status nginx
sudo systemctl is-active nginx
tail -n 5 build.log
tail -n 20 /var/log/app/worker
cat status
cat /tmp/job.status; echo done
sleep 30; cat progress.txt
sleep 5 && ./deploy show
sleep 0.5; squeue -u me
pg_isready -h db
aws ecs describe-services --cluster x
az vm show -n x
helm status web
nomad job status x
ssh host squeue -u me
ssh -p 22 me@host "cd /srv && kubectl get pods"
docker compose exec db pg_isready
docker exec -it db pg_isready -U me
kubectl exec -n web api-0 -- pg_isready
./check_status.sh
bash wait_ready.sh
""".strip().splitlines()

OTHERS = """
cat src/main.py
cat status.py
cat app.py | grep running
tail src/main.c
tail -n 20 notes.md
head -5 README.md
sed -n 1,20p a.py
grep -rn running src
rg pending
find . -name status
git status
git log
make
npm install
npm run status
pytest -q
cargo build
docker build .
docker run web
kubectl apply -f x.yml
gh pr create --title status
aws s3 cp status x
sed -i s/a/b/ x && kubectl get pods
kubectl get pods > out
echo status > x
curl -X POST localhost:80/x
curl -d a=b localhost/status
curl https://a.example/page/2
sleep 0; cat main.py
sleep 2; cat main.py
sleep 1; make
sleep 1 && sed -i s/a/b/ x
echo running
rm status
ssh host cat main.py
ssh host
ssh host "cd /srv && grep -rn running src"
docker exec web pytest -q
kubectl exec api-0 -- sed -n 1,9p a.py
""".strip().splitlines()


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_that_asks_for_a_state(command: str) -> None:
    assert under_way(ran(command, "web-1  0/1  Pending  0"))
    assert not under_way(ran(command, "web-1  1/1  Done  0"))
    words = ToolCall("c", "shell", json.dumps({"command": ["bash", "-lc", command]}), 0)
    assert is_under_way(words, ToolResult("running"), failed=False)


@pytest.mark.parametrize("command", OTHERS)
def test_reading_searching_changing_and_building_are_no_looks(command: str) -> None:
    assert not under_way(ran(command, "pending: loading, installing, running, building 0/5"))


@pytest.mark.parametrize(
    "tool", ["task_status", "jobs", "BashOutput", "wait_for", "poll_job", "checkDeployment", "mcp__ci__get_build"]
)
def test_a_tool_that_asks_for_a_state(tool: str) -> None:
    assert under_way(used(tool, '{"state": "in_progress"}'))
    assert not under_way(used(tool, '{"state": "in_progress"}', error=True))


@pytest.mark.parametrize(
    "tool", ["read_file", "git_status", "search_files", "write_file", "patch", "update_status", "run_tests", "grep"]
)
def test_a_tool_that_reads_or_works(tool: str) -> None:
    assert not under_way(used(tool, "running"))


def test_a_job_says_beside_its_output_that_it_runs() -> None:
    asked = ToolCall("c", "jobs", '{"job": "j1"}', 0)
    assert is_under_way(asked, ToolResult("a.c", status="j1: running (pid 7, in /srv): make"), failed=False)
    assert not is_under_way(asked, ToolResult("a.c", status="j1: ended with exit code 0"), failed=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"status": "in_progress"}', True),
        ("Active: activating (start)", True),
        ("0 running, 3 pending", True),
        ("not yet running, still starting", True),
        ("web  Up 3 seconds (health: starting)", True),
        ("Active: active (running)", False),
        ("nginx is not running", False),
        ("no jobs running", False),
        ("no process is running", False),
        ('{"pending": 0, "done": 5}', False),
        ("wrote src/loading.py", False),
        ("is-loading", False),
        ("3/5", False),
        ("pending " + "x" * 2_000, False),
    ],
)
def test_what_says_that_something_goes_on(text: str, expected: bool) -> None:
    assert under_way(used("task_status", text)) is expected


def test_a_failing_call_counts_only_where_something_is_probed() -> None:
    refused = "connection refused"
    assert under_way(ran("curl -sf localhost:8080/health", refused, 7))
    assert under_way(ran("sleep 1; nc -z db 5432", refused, 1))
    assert not under_way(ran("psql -c 'select 1'", refused, 2))
    assert not under_way(ran("npm install", "registry unavailable, try again", 1))
    assert not under_way(ran("kubectl get pods", refused, 1))
    assert not under_way(ran("curl -sf localhost:8080/health", "pending", 22))


@pytest.mark.parametrize(
    "row",
    [
        used("read_file", "loading = True  # installing, pending", path="a.py"),
        ran("grep -rn running src", "src/a.py:3: state = 'running'"),
        used("patch", "Patched: installing, 0/5 left", path="a.py", old="x", new="y"),
        ran("npm install", "npm ERR! network unavailable, try again", 1),
        ran("pytest -q", "1 failed: service not running", 1),
        ran("systemctl status nginx", "Active: active (running)"),
    ],
)
def test_a_loop_is_not_told_to_wait(row: Row) -> None:
    """Six calls instead of twenty-six, and the advice is the right one."""
    repeats, said, made = Repeats(), "", 0
    while not repeats.too_many and made < 30:
        repeats.note(*row)
        said, made = said or repeats.advice(), made + 1
    assert made == 6
    assert "Repeating them will not help" in said


WAITS = [
    *(
        used(tool, "running", seconds=10.0, id="a")
        for tool in "process read_process read_terminal run_status list_runs task_result fetch_result tail_log computer"
        " run_job start_build get_result Bash terminal delegate".split()
    ),
    *(
        ran(command, text, 0, 10.0)
        for command, text in (
            ("ssh host squeue -u me", "17 me RUNNING"),
            ("ssh host ./deploy show", "still working"),
            ("docker compose exec db ./wait-up", "starting"),
            ("docker compose exec db pg_isready", "waiting for the server"),
            ("terraform plan", "Acquiring state lock. This may take a few moments..."),
            ("terraform apply -auto-approve | tail -3", "aws_db.x: Still creating... [10s elapsed]"),
            ("cargo build", "    Blocking waiting for file lock on build directory"),
            ("cd app && make 2>&1 | head -5", "waiting for other jobs"),
            ("apt install x", "Waiting for cache lock: held by process 7"),
            ("python report.py", "not finished"),
        )
    ),
    ran("docker compose exec db pg_isready", "/tmp:5432 - no response", 2, 10.0),
]
NO_WAITS = [
    used("read_file", "loading = True", seconds=10.0, path="a.py"),
    used("read", "loading = True", seconds=10.0, path="a.py"),
    used("view", "loading = True", seconds=10.0, file_path="a.py"),
    used("editor", "loading", seconds=10.0, command="view", path="a.py"),
    used("open", "loading", seconds=10.0, targetFile="a.py"),
    used("read_notebook", "loading", seconds=10.0, notebook_path="a.ipynb"),
    used("bash", "loading", seconds=10.0, cmd="cat a.py"),
    used("open_file", "loading", seconds=10.0, id=3),
    used("search_files", "a.py: running", seconds=10.0, query="running"),
    used("process", "running " + "x" * 300, seconds=10.0),
    used("process", "no process is running", seconds=10.0),
    used("process", "running tests: finished", seconds=10.0),
    used("process", "running", True, seconds=10.0),
    ran("cat a.py", "loading", 0, 10.0),
    ran("sleep 10; cat a.py", "loading", 0, 10.0),
    ran("sleep 10; grep -n load a.py", "3: loading", 0, 10.0),
    ran("ssh host cat a.py", "loading", 0, 10.0),
    ran("cd src && grep -rn running .", "a.py: running", 0, 10.0),
    ran("find . -name '*.py' | head", "./loading", 0, 10.0),
    ran("git log", "loading", 0, 10.0),
    ran("npm run build", "up to date", 0, 8.0),
    ran("pytest -q", "running\n3 passed", 0, 8.0),
    ran("npm install", "unavailable, try again", 1, 10.0),
    ran("terraform plan", "Error acquiring the state lock", 1, 10.0),
]


def calls_made(row: Row) -> int:
    repeats, made = Repeats(), 0
    while not repeats.too_many and made < 200:
        repeats.note(*row)
        made += 1
    return made


@pytest.mark.parametrize("row", WAITS, ids=lambda row: row[0].name + row[0].arguments)
def test_a_slow_call_that_says_that_something_goes_on_has_waited(row: Row) -> None:
    """Whatever it is called: as long as a tool that is known to wait."""
    assert under_way(row)
    assert 50 < calls_made(row) < 100


@pytest.mark.parametrize("row", NO_WAITS, ids=lambda row: row[0].name + row[0].arguments)
def test_a_slow_call_that_reads_or_has_ended_has_not_waited(row: Row) -> None:
    assert not under_way(row)


@pytest.mark.parametrize("tool", ["process", "read_process", "task_result", "computer"])
def test_a_quick_call_by_an_unknown_tool_is_a_repeat(tool: str) -> None:
    assert calls_made(used(tool, "running")) == 6


@pytest.mark.parametrize("piece", [" -a", " -a b", " a", "'", '"', "\\", " timeout", " -k", " A=1", "/job", " 0", ";"])
def test_odd_commands_are_read_quickly(piece: str) -> None:
    began = time.perf_counter()
    for start in ("kubectl", "docker", "docker exec", "ssh", "kubectl exec", "gh", "curl ", "sleep 0", "timeout", ""):
        under_way(ran((start + piece * LONGEST_LOOK)[:LONGEST_LOOK], "pending"))
    assert time.perf_counter() - began < 1
