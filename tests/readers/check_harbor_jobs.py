"""Reads what termsmith writes for Harbor with Harbor's own code (0.24 or 0.25), which must be installed.

Usage: check_harbor_jobs.py JOBS ATIF...

Every ATIF file passes Harbor's validator. Every job below JOBS loads with Harbor's models without a key that they do not know,
agrees with what Harbor computes of its trials, is served by `harbor view`, and gives `harbor traces export` what was said.
"""

import json
import math
import sys
from pathlib import Path

from harbor.agents.factory import AgentFactory
from harbor.models.agent.name import AgentName
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.utils import traces_utils
from harbor.utils.pass_at_k import compute_pass_at_k_by_evals
from harbor.utils.trajectory_validator import TrajectoryValidator
from harbor.viewer.server import create_app


def unknown_keys(written, loaded, where=""):
    """Keys that a model dropped silently. Harbor's models refuse few of them."""
    if isinstance(written, dict) and isinstance(loaded, dict):
        loaded = {str(key): value for key, value in loaded.items()}
        for key, value in written.items():
            if key in loaded:
                yield from unknown_keys(value, loaded[key], f"{where}.{key}")
            elif value is not None:
                yield f"{where}.{key}"
    elif isinstance(written, list) and isinstance(loaded, list):
        for at, (one, other) in enumerate(zip(written, loaded)):
            yield from unknown_keys(one, other, f"{where}[{at}]")


def load(model, path):
    text = path.read_text()
    loaded = model.model_validate_json(text)
    dropped = list(unknown_keys(json.loads(text), loaded.model_dump(mode="json")))
    assert not dropped, f"{path}: Harbor does not know {dropped}"
    return loaded


def check_atif(path):
    validator = TrajectoryValidator()
    assert validator.validate(path), f"{path}: {validator.get_errors()}"
    return json.loads(path.read_text())


def check_job(job):
    config = load(JobConfig, job / "config.json")
    result = load(JobResult, job / "result.json")
    assert config.job_name == job.name
    folders = sorted(path for path in job.iterdir() if path.is_dir())
    trials = [check_trial(folder, result) for folder in folders]
    assert result.n_total_trials == len(trials) == result.stats.n_completed_trials

    own = JobStats.from_trial_results(trials, n_total_trials=len(trials)).model_dump()
    ours = result.stats.model_dump()
    rewarded = [trial for trial in trials if trial.verifier_result is not None]
    pass_at_k = compute_pass_at_k_by_evals(rewarded)
    for key, stats in ours["evals"].items():
        found, expected = stats.pop("pass_at_k"), pass_at_k.get(key, {})
        assert found.keys() == expected.keys(), (key, found, expected)
        assert all(math.isclose(found[k], expected[k]) for k in found), (key, found, expected)
        stats.pop("metrics")
        own["evals"][key].pop("pass_at_k"), own["evals"][key].pop("metrics")
        for rewards in (stats["reward_stats"], own["evals"][key]["reward_stats"]):
            for names in rewards.get("reward", {}).values():
                names.sort()
    for stats in (own, ours):
        stats["cost_usd"] = None if stats["cost_usd"] is None else round(stats["cost_usd"], 9)
        for one in stats["evals"].values():
            for names in one["exception_stats"].values():
                names.sort()
    assert ours == own, f"{job}:\n{ours}\n{own}"
    return trials


def check_trial(folder, job):
    config = load(TrialConfig, folder / "config.json")
    result = load(TrialResult, folder / "result.json")
    assert config.trial_name == result.trial_name == folder.name
    assert result.trial_uri == folder.resolve().as_uri()
    for path in sorted((folder / "agent").glob("trajectory*.json")):
        check_atif(path)
    rewards = result.verifier_result and result.verifier_result.rewards
    reward_file = folder / "verifier" / "reward.txt"
    assert (rewards is not None) == reward_file.exists(), folder
    if rewards is not None:
        assert rewards == {"reward": float(reward_file.read_text())}, folder
    check_traces(folder, parts(folder))
    return result


def parts(folder):
    """The documents of one rollout: several, if its conversation continued from a summary."""
    name, found = "trajectory.json", []
    while name:
        found.append(json.loads((folder / "agent" / name).read_text()))
        name = found[-1].get("continued_trajectory_ref")
    assert len(found) == 1 + len(list((folder / "agent").glob("trajectory.cont-*.json"))), folder
    return found


def check_traces(folder, documents):
    """The steps of `export_traces` for one trial, without the `datasets` package."""
    meta = traces_utils.load_run_metadata(folder)
    assert AgentFactory.get_agent_class(AgentName(meta["agent_name"])).capabilities.atif, folder
    episodes = traces_utils.collect_conversations_from_trial(folder, run_meta=meta, episodes="all")
    told = lambda step: step["source"] == "agent" and not step.get("is_copied_context")
    spoken = [(document, sum(map(told, document["steps"]))) for document in documents]
    # Of each part the last episode, which has the others before it; what was copied into a part is no episode.
    rows, end = [], 0
    for document, count in spoken:
        end += count
        rows += [(episodes[end - 1], document)] if count else []
    assert len(episodes) == end, folder
    for row, document in rows:
        said = [message["content"] for message in row["conversations"] if message["role"] == "assistant"]
        steps = [step for step in document["steps"] if step["source"] == "agent"]
        assert len(said) == len(steps), folder
        for text, step in zip(said, steps):
            if not step.get("reasoning_content") and not step.get("tool_calls"):
                assert text == step["message"], folder
            assert step["message"] in text, folder
            assert ("<tool_call>" in text) == bool(step.get("tool_calls")), folder


def check_view(jobs, trials_by_job):
    from starlette.testclient import TestClient

    client = TestClient(create_app(jobs))

    def get(path):
        answer = client.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()

    listed = get("/api/jobs")["items"]
    assert {job["name"] for job in listed} == set(trials_by_job), listed
    for job, trials in trials_by_job.items():
        get(f"/api/jobs/{job}")
        get(f"/api/jobs/{job}/config")
        get(f"/api/jobs/{job}/tasks")
        page = get(f"/api/jobs/{job}/trials?page_size=100")
        assert page["total"] == len(trials), page["total"]
        for trial in trials:
            get(f"/api/jobs/{job}/trials/{trial.trial_name}")
            assert get(f"/api/jobs/{job}/trials/{trial.trial_name}/trajectory")["steps"]
            get(f"/api/jobs/{job}/trials/{trial.trial_name}/verifier-output")


def check_datasets(jobs, trials):
    """Runs the command itself, if `datasets` is installed too."""
    try:
        import datasets  # noqa: F401
    except ImportError:
        return "not installed"
    rows = traces_utils.export_traces(
        jobs, episodes="last", to_sharegpt=True, include_instruction=True, include_verifier_output=True, use_rich_progress=False
    )
    assert 0 < len(rows) <= trials + len(list(jobs.glob("*/*/agent/trajectory.cont-*.json"))), len(rows)
    return f"{len(rows)} rows"


def main():
    jobs, documents = Path(sys.argv[1]).resolve(), [Path(path) for path in sys.argv[2:]]
    for document in documents:
        check_atif(document)
    found = {job.name: check_job(job) for job in sorted(jobs.iterdir()) if job.is_dir()}
    check_view(jobs, found)
    trials = sum(map(len, found.values()))
    print(f"atif {len(documents)}, jobs {len(found)}, trials {trials}, datasets {check_datasets(jobs, trials)}")


main()
