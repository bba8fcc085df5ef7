"""Writes a job folder with Harbor's own models (0.24 or 0.25): trials of terminus-2 in each version of ATIF and with each outcome.

Usage: make_harbor_job.py FOLDER
"""

import sys
from datetime import datetime, timezone
from pathlib import Path
from uuid import uuid4

from harbor.models.agent.context import AgentContext
from harbor.models.task.id import LocalTaskId
from harbor.models.trajectories import Agent, FinalMetrics, Metrics, Observation, ObservationResult, Step, ToolCall, Trajectory
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import AgentInfo, ExceptionInfo, ModelInfo, TrialResult
from harbor.models.verifier.result import VerifierResult
from harbor.utils.trajectory_utils import format_trajectory_json

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
RAW = '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n", "duration": 0.1}], "task_complete": %s}'
FATES = [(1.0, None), (0.0, None), (0.0, "AgentTimeoutError"), (None, "RewardFileNotFoundError"), (None, "EnvironmentStartTimeoutError")]


def trajectory(version, raw):
    def seen(text, call=None):
        return Observation(results=[ObservationResult(source_call_id=call, content=text)])

    def agent(step, complete, text):
        said = dict(step_id=step, source="agent", timestamp=NOW.isoformat(), metrics=Metrics(prompt_tokens=9, completion_tokens=3))
        if raw:
            return Step(message=RAW % complete, observation=seen(text), **said)
        calls = [ToolCall(tool_call_id=f"call_{step}_1", function_name="bash_command", arguments={"keystrokes": "ls\n", "duration": 0.1})]
        if complete == "true":
            calls.append(ToolCall(tool_call_id=f"call_{step}_task_complete", function_name="mark_task_complete", arguments={}))
        return Step(message="Analysis: a\nPlan: p", tool_calls=calls, observation=seen(text, calls[0].tool_call_id), **said)

    steps = [Step(step_id=1, source="user", message="Task"), agent(2, "false", "src"), agent(3, "true", "sure?"), agent(4, "true", "bye")]
    return Trajectory(
        schema_version=version,
        session_id=str(uuid4()),
        agent=Agent(name="terminus-2", version="2.0.0", model_name="far-model", extra={"parser": "json"}),
        steps=steps,
        final_metrics=FinalMetrics(total_steps=len(steps)),
    )


def main():
    job = Path(sys.argv[1])
    for minor in range(9):
        reward, exception = FATES[minor % len(FATES)]
        name = f"some-task__{minor}"
        folder = job / name
        (folder / "agent").mkdir(parents=True)
        config = TrialConfig(task=TaskConfig(path=Path("tasks/some-task")), trial_name=name, agent=AgentConfig(name="terminus-2"))
        result = TrialResult(
            task_name="some-task",
            trial_name=name,
            trial_uri=folder.resolve().as_uri(),
            task_id=LocalTaskId(path=Path("tasks/some-task")),
            task_checksum="abc",
            config=config,
            agent_info=AgentInfo(name="terminus-2", version="2.0.0", model_info=ModelInfo(name="far-model", provider="p")),
            agent_result=AgentContext(n_input_tokens=27),
            verifier_result=None if reward is None else VerifierResult(rewards={"reward": reward}),
            exception_info=exception
            and ExceptionInfo(exception_type=exception, exception_message="why", exception_traceback="", occurred_at=NOW),
            started_at=NOW,
        )
        (folder / "config.json").write_text(config.model_dump_json(indent=4))
        (folder / "result.json").write_text(result.model_dump_json(indent=4))
        document = trajectory(f"ATIF-v1.{minor}", raw=minor % 2 == 0)
        (folder / "agent" / "trajectory.json").write_text(format_trajectory_json(document.to_json_dict()))


main()
