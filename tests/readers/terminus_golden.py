"""Expected values of the protocol's tests: results of Harbor's own terminus-2 for replies and screens.

    PYTHON_WITH_HARBOR terminus_golden.py >../golden/terminus.json

Harbor's classes run as they are; only the model, the container and the clock are simulated here.
"""

import asyncio
import json
import logging
import os
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

# Nothing here calls a model, so prices need not be fetched.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from harbor.agents.terminus_2.terminus_2 import Terminus2, Terminus2Options
from harbor.agents.terminus_2.terminus_json_plain_parser import TerminusJSONPlainParser
from harbor.agents.terminus_2.terminus_xml_plain_parser import TerminusXMLPlainParser
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.llms.base import ContextLengthExceededError, LLMResponse, OutputLengthExceededError
from harbor.models.agent.context import AgentContext


def reply(commands='[{"keystrokes": "ls\\n", "duration": 0.1}]', more="", analysis='"a"', plan='"p"'):
    return f'{{"analysis": {analysis}, "plan": {plan}, "commands": {commands}{more}}}'


def command(fields):
    return reply("[{" + fields + "}]")


JSON = [
    # As asked for.
    reply(), reply("[]"), reply(more=', "task_complete": true'), reply(more=', "task_complete": false'),
    reply("[]", ', "task_complete": true'), "\n " + reply() + "\n", reply(analysis='"é 漢 😀 \\u00e9 \\ud83d\\ude00"'),
    reply('[{"keystrokes": "a\\n", "duration": 1}, {"keystrokes": "b\\n", "duration": 2.5}]'),
    reply('[{"keystrokes": "", "duration": 10.0}]'), reply('[{"keystrokes": "C-c", "duration": 0.1}]'),
    # Completion in other words.
    *[reply(more=f', "task_complete": {value}') for value in
      ['"true"', '"True"', '"yes"', '"YES"', '"1"', '"no"', '""', '"on"', "1", "0", "0.0", "1.5", "null", "[]", "[0]", "{}", '{"a": 1}', "-0", "NaN"]],
    # Around the object.
    "Sure!\n" + reply(), reply() + "\nDone.", "```json\n" + reply() + "\n```", "<think>x</think>" + reply(), reply() + reply(),
    "{} " + reply(), "{not json} " + reply(), 'He said "{" and then ' + reply(), 'It\'s 5" ' + reply(), "\\" + reply(),
    "\u00a0\u2003" + reply() + "\u3000\x1c", "\ufeff" + reply(),
    # Fields.
    '{"plan": "p", "analysis": "a", "commands": []}', '{"commands": [], "plan": "p", "analysis": "a"}',
    '{"analysis": "a", "commands": [], "plan": "p"}', '{"analysis": "a", "plan": "p"}', '{"analysis": "a"}', "{}",
    '{"plan": "p", "commands": []}', '{"analysis": "the \\"commands\\" : x", "plan": "p", "commands": []}',
    '{"analysis": "a", "plan": "p", "commands": [], "analysis": "b"}', '{"analysis" : "a", "plan"\n:"p", "commands"\t: []}',
    reply(more=', "notes": "x"'), reply(analysis="5"), reply(plan="null"), reply(analysis="[1, 2.5, true]", plan='{"a": "é"}'),
    reply("{}"), reply('"ls"'), reply("null"), reply('{"keystrokes": "ls\\n"}'), "[]", '"text"', "5", "[" + reply() + "]",
    # Commands.
    command('"keystrokes": "ls\\n"'), command('"keystrokes": "ls"'), command('"keystrokes": 5, "duration": 1'),
    command('"keystrokes": null'), command('"keystroke": "ls\\n"'), command('"duration": 1'), reply('["ls\\n"]'), reply("[[]]"), reply("[null, 1]"),
    command('"keystrokes": "ls\\n", "duration": "1.0"'), command('"keystrokes": "ls\\n", "duration": null'),
    command('"keystrokes": "ls\\n", "duration": true'), command('"keystrokes": "ls\\n", "duration": [1]'),
    command('"keystrokes": "ls\\n", "duration": -5'), command('"keystrokes": "ls\\n", "duration": 3600'),
    command('"keystrokes": "ls\\n", "duration": 60'), command('"keystrokes": "ls\\n", "duration": 1e400'),
    command('"keystrokes": "ls\\n", "duration": NaN'), command('"keystrokes": "ls\\n", "duration": Infinity'),
    command('"keystrokes": "ls\\n", "duration": -Infinity'), command('"keystrokes": "ls\\n", "duration": 1, "is_blocking": true'),
    command('"keystrokes": "ls\\n", "duration": 1, "timeout_sec": 5, "append_enter": true'),
    reply('[{"keystrokes": "a", "duration": 1}, {"keystrokes": "b", "duration": 1}]'),
    reply('[{"keystrokes": "", "duration": 1}, {"keystrokes": "b\\r", "duration": 1}, {"keystrokes": "c\\n"}]'),
    reply('[{"keystrokes": "a\\n", "duration": 1}, "b"]'), reply('["b"]', ', "task_complete": true'),
    reply('[{"duration": 1}]', ', "task_complete": "true"'), reply("5", ', "task_complete": true'),
    # Broken JSON.
    reply()[:-1], reply()[:-2], reply()[:-3], reply()[:40], '{"analysis": "a', '{"analysis": "a"', '{"analysis": "a",', "{", "}", "", " ",
    "no json at all", "null", reply(more=","), reply('[{"keystrokes": "ls\\n",}]'), reply("[1,]"), reply("[1 2]"),
    reply().replace('"a"', "'a'"), reply().replace('"analysis"', "analysis"), reply().replace('": "a"', '" "a"'), reply().replace(', "plan"', ' "plan"'),
    reply(analysis='"two\nlines"'), reply(analysis='"tab\there"'), reply(analysis='"bad \\escape"'), reply(analysis='"bad \\u12"'),
    reply(analysis='"bad \\u12g4"'), reply(analysis='"half \\ud83d pair"'), reply(analysis='"half \\ud83d\\u0041"'), reply(analysis='"\\ud83d\\ux"'), reply(analysis='"\\/\\b\\f\\n\\r\\t\\"\\\\"'),
    reply(analysis="True"), reply(analysis="tru"), reply(analysis="nul"), reply(analysis="+1"), reply(analysis="01"), reply(analysis="1."),
    reply(analysis=".5"), reply(analysis="1e"), reply(analysis="1E+5"), reply(analysis="-"), reply(analysis="-a"), reply(analysis="--1"), reply(analysis="undefined"),
    reply(analysis='"' + "x" * 300 + '" oops'), reply(analysis="'" + "é\u200b\\\\" * 20 + "'"), "{\n  \"analysis\": \"é漢\",\n  \"plan\" \"p\"\n}",
    reply(analysis='"' + "y" * 133 + '" 1'), reply(analysis='"' + "y" * 134 + '" 1'), reply(analysis='"' + "y" * 135 + '" 1'),
    '{"analysis": "a"} {"analysis": "a", "plan": "p", "commands": []}', "{'a': 1} " + reply("[]"), "{'a': 1} " + reply(), "{{" + reply() + "}}",
    "text { more " + reply("[]"), "text } more " + reply(), '"quote ' + reply("[]"), '" { ' + reply("[]") + ' " }', reply("[]") + " }", "{ " + reply("[]"),
    '{"analysis": {"deep": {"deeper": {}}}, "plan": "p", "commands": []', "\\{" + reply("[]"),
]


def xml(inside, before="", after=""):
    return f"{before}<response>\n{inside}\n</response>{after}"


SECTIONS = "<analysis>a</analysis>\n<plan>p</plan>\n"
KEYS = '<keystrokes duration="0.1">ls\n</keystrokes>'


def keys(elements, more=""):
    return xml(SECTIONS + f"<commands>\n{elements}\n</commands>" + more)


XML = [
    keys(KEYS), keys(KEYS, "<task_complete>true</task_complete>"), keys(KEYS, "<task_complete>false</task_complete>"),
    keys(KEYS, "<task_complete/>"), keys(KEYS, "<task_complete></task_complete>"), keys(KEYS, "<task_complete> TRUE\n</task_complete>"),
    keys(KEYS, "<TASK_COMPLETE>true</TASK_COMPLETE>"), keys(KEYS, "<task_complete>yes</task_complete>"), keys(KEYS + KEYS),
    # Around it.
    xml(SECTIONS + f"<commands>{KEYS}</commands>", before="Sure!\n"), xml(SECTIONS + f"<commands>{KEYS}</commands>", after="\nDone."),
    keys(KEYS) + keys(KEYS), "</response>" + keys(KEYS), keys(KEYS)[: -len("</response>")], "<response>", "<response></response>", "<response> \n</response>",
    "", "no tags", KEYS, "<think><response></think>" + keys(KEYS), "<response>" + keys(KEYS), "\u00a0" + keys(KEYS) + "\x1f", "<RESPONSE></RESPONSE>",
    # Sections.
    xml("<analysis>a</analysis>"), xml(SECTIONS), xml(SECTIONS + "<task_complete>true</task_complete>"), xml(SECTIONS + "<commands></commands>"),
    xml(SECTIONS + "<commands/>"), xml(SECTIONS + "<commands />"), xml(SECTIONS + "<commands></commands><task_complete>true</task_complete>"),
    xml(SECTIONS + "<commands>text only</commands>"), xml("<plan>p</plan><analysis>a</analysis><commands></commands>"),
    xml(f"<commands>{KEYS}</commands>" + SECTIONS), xml(f"<plan>p</plan><commands>{KEYS}</commands>"), xml(f"<analysis/><plan/><commands>{KEYS}</commands>"),
    xml(f"<analysis></analysis><plan></plan><commands>{KEYS}</commands>"), xml(f"<analysis a='1'>a</analysis><plan>p</plan><commands>{KEYS}</commands>"),
    xml(SECTIONS + f"<commands>{KEYS}</commands><commands>{KEYS}</commands>"), xml(SECTIONS + SECTIONS + f"<commands>{KEYS}</commands>"),
    xml(SECTIONS + f"<notes>n</notes><commands>{KEYS}</commands>"), xml(SECTIONS + f"<notes/><commands>{KEYS}</commands>"),
    xml(SECTIONS + f"<notes a=\"1\">n</notes><notes b='2'/><commands>{KEYS}</commands>"), xml(SECTIONS + f"<commands>{KEYS}"), xml(SECTIONS + f"<commands>{KEYS}</commands><extra"),
    xml(f"<!-- c --><?x?><analysis>a < b > c</analysis><plan>p</plan><commands>{KEYS}</commands>"), xml(f"</x>{SECTIONS}<commands>{KEYS}</commands>"),
    xml(f"<analysis>x <b>bold</b></analysis><plan>if a<b</plan><commands>{KEYS}</commands><late>"), xml(f"<ERROR:>{SECTIONS}<commands>{KEYS}</commands>"),
    xml(f"<analysis>< ></analysis><plan>p</plan><commands>{KEYS}</commands>"), xml(f"<\n>{SECTIONS}<commands>{KEYS}</commands>"),
    # Commands.
    keys("<keystrokes>ls\n</keystrokes>"), keys("<keystrokes duration='0.1'>ls\n</keystrokes>"), keys("<keystrokes duration=0.1>ls\n</keystrokes>"),
    keys('<keystrokes duration="abc">ls\n</keystrokes>'), keys('<keystrokes duration="">ls\n</keystrokes>'), keys('<keystrokes duration=" 1_0.5 ">ls\n</keystrokes>'),
    keys('<keystrokes duration="inf">ls\n</keystrokes>'), keys('<keystrokes duration="nan">ls\n</keystrokes>'), keys('<keystrokes duration="-1">ls\n</keystrokes>'),
    keys('<keystrokes duration="1e3">ls\n</keystrokes>'), keys('<keystrokes duration = "5" >ls\n</keystrokes>'), keys('<keystrokes Duration="5">ls\n</keystrokes>'),
    keys('<keystrokes duration="5" block="true">ls\n</keystrokes>'), keys('<keystrokes block=true duration="5">ls\n</keystrokes>'),
    keys('<keystrokes my-duration="5">ls\n</keystrokes>'), keys("<keystrokes a=b=c duration='5\">ls\n</keystrokes>"), keys('<keystrokes duration="5>ls\n</keystrokes>'),
    keys("<keystrokes/>"), keys('<keystrokes duration="1"></keystrokes>'), keys('<keystrokes duration="1">C-c</keystrokes>' + KEYS),
    keys('<keystrokes duration="1">a</keystrokes><keystrokes duration="1">b</keystrokes>'), keys('<keystrokesduration="1">ls\n</keystrokes>'),
    keys('<keystrokes duration="1">a &lt;b&gt; &amp;&amp; c &quot;d&quot; &apos;</keystrokes>'), keys('<keystrokes duration="1">a\\r\\nb</keystrokes>'),
    keys('<keystrokes duration="1">a\r\n</keystrokes>'), keys('<keystrokes duration="1">cat > x <<E\n<a>b</a>\nE\n</keystrokes>'),
    keys('<keystrokes duration="1">echo "</commands>"\n</keystrokes>'), keys('<keystrokes duration="1">ls\n'), keys('<keystrokes duration="1">ls\n</keystrokes'),
    keys('<keystrokes duration="1">x</keystrokes>' * 3, "<task_complete>true</task_complete>"), keys('<keystrokes duration="1">echo "<task_complete>true</task_complete>"\n</keystrokes>'),
    xml(f"<analysis>é 漢</analysis><plan>😀</plan><commands>{KEYS}</commands>"), keys("<keystrokes duration=\"1\" é='x'>é\n</keystrokes>"),
]

SALVAGE = [
    keys(KEYS), keys(KEYS) + " and so on", keys(KEYS)[:-5], keys(KEYS) + keys(KEYS)[:60], keys(KEYS) + "<response>", keys(KEYS).replace("</commands>", ""),
    xml(SECTIONS + f"<commands>{KEYS}</commands><commands></commands>") + "x", SECTIONS + "<commands></commands></response>", "</commands></response>", "",
]


class Stop(BaseException):
    """No replies are left."""


class Container:
    """Simulates tmux: lists the panes, records the keystrokes."""

    session_id = "session"

    def __init__(self, panes):
        self.panes, self.now, self.typed = panes, 0, []

    async def exec(self, command, user=None, **_):
        words = shlex.split(command)
        out = ""
        if "capture-pane" in words:
            full, screen = self.panes[min(self.now, len(self.panes) - 1)]
            out = full if "-S" in words else screen
            # Every look begins with the full pane.
            self.looked = "-S" in words
        elif "send-keys" in words:
            self.typed.append(words[words.index("--") + 1 :])
        elif "load-buffer" in words or "base64" in words:
            self.typed.append("pasted")
        return SimpleNamespace(return_code=0, stdout=out, stderr="")


class Chat:
    total_input_tokens = total_output_tokens = total_cache_tokens = 0
    total_cost = 0.0

    def __init__(self, container, replies):
        self.container, self.replies = container, list(replies)
        self.prompts, self.messages = [], [{"role": "user", "content": "first"}]

    async def chat(self, prompt, **_):
        self.prompts.append(prompt)
        if not self.replies:
            raise Stop
        text = self.replies.pop(0)
        if isinstance(text, dict):
            raise OutputLengthExceededError("too long", truncated_response=text["cut"])
        if text is None:
            raise ContextLengthExceededError("too long")
        self.container.now += 1
        return LLMResponse(content=text)

    def reset_response_chain(self):
        pass


def make_agent(format, panes, replies, output_limit=None):
    agent = Terminus2.__new__(Terminus2)
    agent.options = Terminus2Options(parser_name=format, enable_summarize=False)
    agent.logger = logging.getLogger("quiet")
    agent._parser = agent._get_parser()
    agent._prompt_template = agent._get_prompt_template_path().read_text()
    agent._timeout_template = agent._get_timeout_template_path().read_text()
    agent._context, agent._model_name, agent._session_id = AgentContext(), "m", "s"
    agent._max_episodes, agent._pending_completion, agent._summarization_count = 100, False, 0
    agent._trajectory_steps, agent._api_request_times, agent._llm_call_kwargs = [], [], {}
    agent._pending_subagent_refs = agent._pending_handoff_prompt = None
    agent._llm = SimpleNamespace(get_model_output_limit=lambda: output_limit)
    agent._dump_trajectory = lambda: None
    container = Container(panes)
    agent._session = TmuxSession("terminus-2", container, Path("/dev/null"), None, None)
    return agent, container, Chat(container, replies)


def parse(format, text):
    parser = {"json": TerminusJSONPlainParser, "xml": TerminusXMLPlainParser}[format]()
    try:
        got = parser.parse_response(text)
    except Exception as error:
        return {"format": format, "reply": text, "raises": type(error).__name__}
    agent, _, chat = make_agent(format, [("$ \n", "$ \n")] * 3, [text])
    try:
        asyncio.run(agent._run_agent_loop("first", chat))
    except Stop:
        pass
    text_of = lambda value: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {
        "format": format,
        "reply": text,
        "commands": [{"keystrokes": c.keystrokes, "duration": str(c.duration)} for c in got.commands],
        "complete": bool(got.is_task_complete),
        "error": got.error,
        "warning": got.warning,
        "analysis": text_of(got.analysis),
        "plan": text_of(got.plan),
        "next": chat.prompts[1],
    }


def lines(*texts, rows=5):
    return "".join(text + "\n" for text in texts) + "\n" * (rows - len(texts))


def history(count, last=5):
    """A pane with more lines than the screen has."""
    every = [f"line {n} of the output" for n in range(count)]
    return lines(*every, rows=0), lines(*every[-last:])


DONE, GOON, WARN, BAD = reply(more=', "task_complete": true'), reply(), reply() + " x", "no"
DONE_XML = keys(KEYS, "<task_complete>true</task_complete>")
SAME = lambda text: (text, text)
CONVERSATIONS = {
    "new output": ("json", [SAME(lines("$")), SAME(lines("$ ls", "a  b", "$")), SAME(lines("$ ls", "a  b", "$ ls", "a  b", "$"))], [GOON, GOON]),
    "nothing new": ("json", [SAME(lines("$")), SAME(lines("$")), SAME(lines("$"))], [GOON, GOON]),
    "one line grows": ("json", [SAME(lines("$")), SAME(lines("$ sleep 5")), SAME(lines("$ sleep 5", "$"))], [GOON, GOON]),
    "cleared": ("json", [SAME(lines("$ ls", "a b", "$")), SAME(lines("$")), SAME(lines("$"))], [GOON, GOON]),
    "empty at first": ("json", [SAME(lines()), SAME(lines("$")), SAME(lines("$ x"))], [GOON, GOON]),
    "blank lines before": ("json", [SAME(lines("", "", "$ a", "b")), SAME(lines("", "", "$ a", "b", "c")), SAME(lines("x", "", "", "$ a", "b", "c", "d"))], [GOON, GOON]),
    "wide characters before": ("json", [SAME(lines("漢 é", "b")), SAME(lines("é", "漢 é", "b", "c"))], [GOON]),
    "full screen program": ("json", [SAME(lines("$ ls", "a")), SAME(lines("~", "~", "VIM")), SAME(lines("$ ls", "a", "$"))], [GOON, GOON]),
    "much output": ("json", [SAME(lines("$")), history(450), history(900)], [GOON, WARN]),
    "much output at the start": ("json", [history(450), history(450)], [GOON]),
    "much output of wide characters": ("json", [SAME(lines("$")), SAME(lines("$", *["漢字é" * 20] * 90))], [GOON]),
    "much output and completion": ("json", [SAME(lines("$")), history(450), history(900)], [DONE, DONE]),
    "complete twice": ("json", [SAME(lines("$"))], [DONE, DONE]),
    "complete, go on, complete": ("json", [SAME(lines("$"))], [DONE, GOON, DONE, WARN, DONE, DONE]),
    "complete, error, complete": ("json", [SAME(lines("$"))], [DONE, BAD, DONE]),
    "complete with warning": ("json", [SAME(lines("$"))], [DONE + " x", DONE + " y"]),
    "complete with bad commands": ("json", [SAME(lines("$"))], [reply("[1]", ', "task_complete": true'), reply("[1]", ', "task_complete": true')]),
    "errors": ("json", [SAME(lines("$"))], [BAD, "{}", reply()[:50], GOON]),
    "xml": ("xml", [SAME(lines("$")), SAME(lines("$ ls", "a")), SAME(lines("$ ls", "a"))], [keys(KEYS), "no", keys(KEYS) + "x", DONE_XML, DONE_XML]),
    "xml warning that says error": ("xml", [SAME(lines("$"))], [xml(f"<ERROR:>{SECTIONS}<commands>{KEYS}</commands>"), keys(KEYS)]),
    "cut off": ("json", [SAME(lines("$"))], [{"cut": reply()[:50]}, {"cut": "Sure! " + reply() + " and"}, GOON]),
    "cut off xml": ("xml", [SAME(lines("$"))], [{"cut": keys(KEYS)[:-30]}, {"cut": ""}, keys(KEYS)]),
}


def converse(name, output_limit=None):
    format, panes, replies = CONVERSATIONS[name]
    agent, container, chat = make_agent(format, panes, replies, output_limit)
    ended = "replies"

    async def run():
        state = agent._limit_output_length(await agent._session.get_incremental_output())
        first = agent._prompt_template.format(instruction="Do {this}.", terminal_state=state)
        await agent._run_agent_loop(first, chat)
        return "done"

    try:
        ended = asyncio.run(run())
    except Stop:
        pass
    return {
        "name": name,
        "format": format,
        "output_limit": output_limit,
        "instruction": "Do {this}.",
        "panes": panes,
        "replies": replies,
        "prompts": chat.prompts,
        "typed": container.typed,
        "ended": ended,
    }


def summaries():
    """The prompts of a summary, and of both fallbacks if it fails."""
    agent, _, chat = make_agent("json", [SAME("screen\n")], [])
    prompts = []

    async def subagent(prompt, **_):
        prompts.append(prompt)
        return LLMResponse(content=f"reply {len(prompts)}"), None

    agent._run_subagent = subagent
    handoff, _ = asyncio.run(agent._summarize(chat, "Do {this}.", agent._session))
    found = {"summary": prompts[0], "questions": prompts[1], "answers": prompts[2], "handoff": handoff}

    screen = "".join(f"{n} é\n" for n in range(400))
    for name, fails in [("short_handoff", False), ("last_resort", True)]:
        agent, _, chat = make_agent("json", [SAME(screen)], [None, "ok"])
        agent.options = Terminus2Options(parser_name="json", enable_summarize=True)
        agent._unwind_messages_to_free_tokens = lambda chat, target_free_tokens: None

        async def no_summary(*_):
            raise ValueError

        async def call(prompt, **_):
            found["short_summary"] = prompt
            if fails:
                raise ValueError
            return LLMResponse(content="short")

        agent._summarize, agent._llm.call = no_summary, call
        asyncio.run(agent._query_llm(chat, "p", "Do {this}.", agent._session))
        found[name] = chat.prompts[-1]
    return {"screen": screen, **found}


def dump(case):
    """As JSON. Halves of surrogate pairs, which are no text, become U+FFFD."""
    text = json.dumps(case, ensure_ascii=False)
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return json.dumps(json.loads(whole))


def main():
    async def no_sleep(_):
        pass

    asyncio_sleep, asyncio.sleep = asyncio.sleep, no_sleep
    parser = TerminusXMLPlainParser()
    agent, *_ = make_agent("json", [SAME("")], [])
    timeout = agent._timeout_template.format(timeout_sec=5.0, command="sleep 9\n", terminal_state="$ sleep 9\n")
    sections = {
        "parse": [parse("json", text) for text in JSON] + [parse("xml", text) for text in XML],
        "salvage": [{"text": text, "salvaged": parser.salvage_truncated_response(text)[0]} for text in SALVAGE],
        "conversations": [converse(name) for name in CONVERSATIONS] + [converse("cut off", 4096)],
        "summaries": [summaries()],
        "timeout": [timeout],
    }
    asyncio.sleep = asyncio_sleep
    # One case a line, so that a change shows as one line.
    body = (f'"{name}": [\n' + ",\n".join(map(dump, cases)) + "\n]" for name, cases in sections.items())
    sys.stdout.write("{" + ",\n".join(body) + "}\n")


if __name__ == "__main__":
    main()
