//! `termsmith.toml`, good and bad.

use termsmith::llm::{Api, JsonMode, MaxTokensKey, ModelRole, Settings, settings_schema};

const HEAD: &str = "version = 1\n[endpoints.local]\nbase_url = \"http://127.0.0.1:8000/v1\"\n";
const ROLE: &str = "[roles.expert]\nendpoint = \"local\"\nmodel = \"m\"\nmax_tokens = 10\n";

#[test]
fn good_settings() {
    let full = format!(
        "{HEAD}api_key_env = \"MY_KEY\"\nrequests_per_minute = 60\ntokens_per_minute = 90_000\nconcurrency = 4\n\
         timeout_sec = 30\njson = \"schema\"\nusd_per_1m_input_tokens = 0.5\nusd_per_1m_output_tokens = 2\nmax_context = 32768\n\
         max_tokens_key = \"max_completion_tokens\"\nreturn_reasoning = true\napi = \"responses\"\n\
         {ROLE}temperature = 0.7\ntop_p = 0.9\nseed = 3\n[roles.expert.extra]\ntop_k = 20\nchat_template_kwargs = {{ enable_thinking = true }}\n\
         [roles.judge]\nendpoint = \"local\"\nmodel = \"m2\"\nmax_tokens = 5\n"
    );
    let settings = Settings::parse("termsmith.toml", &full).unwrap();
    let endpoint = &settings.endpoints["local"];
    assert_eq!(
        (endpoint.json, endpoint.max_tokens_key, endpoint.api),
        (JsonMode::Schema, MaxTokensKey::MaxCompletionTokens, Api::Responses)
    );
    assert_eq!(settings.roles[&ModelRole::Expert].extra["chat_template_kwargs"]["enable_thinking"], true);
    assert_eq!(settings.roles[&ModelRole::Judge].extra.len(), 0);
    // Written settings are read back unchanged.
    let written = toml::to_string(&settings).unwrap();
    assert_eq!(Settings::parse("again.toml", &written).unwrap(), settings);

    let least = Settings::parse("termsmith.toml", &format!("{HEAD}{ROLE}")).unwrap();
    let endpoint = &least.endpoints["local"];
    assert_eq!((endpoint.concurrency, endpoint.timeout_sec, endpoint.json), (8, 600.0, JsonMode::None));
    assert_eq!(endpoint.api, Api::Chat);
    Settings::parse("termsmith.toml", "version = 1").unwrap();
}

#[test]
fn bad_settings() {
    let endpoint = |line: &str| format!("{HEAD}{line}\n");
    let role = |line: &str| format!("{HEAD}{ROLE}{line}\n");
    let url = |url: &str| format!("version = 1\n[endpoints.local]\nbase_url = \"{url}\"\n");
    for (text, expected) in [
        (String::new(), "t.toml:1:1: missing key `version`"),
        (
            "version = 2\nnew = 1".to_owned(),
            "t.toml:1:11: version 2 of the format is unknown to this build\nhint: it reads version 1",
        ),
        (
            "version = 1\n[endpoint.a]".to_owned(),
            "t.toml:2:2: unknown key `endpoint`\nhint: did you mean `endpoints`?",
        ),
        ("version = ".to_owned(), "t.toml:1:11: "),
        (
            endpoint("api_key = \"sk-1\""),
            "t.toml:4:1: unknown key `api_key`\nhint: did you mean `api_key_env`?",
        ),
        (
            endpoint("api_key_env = \"sk-secret-1\""),
            "t.toml:4:15: `api_key_env` is not the name of an environment variable\nhint: put the key into an environment variable",
        ),
        (
            endpoint("json = \"yaml\""),
            "t.toml:4:8: unknown word `yaml`\nhint: known are `schema`, `object`, `none`",
        ),
        (endpoint("concurrency = 0"), "t.toml:4:15: `concurrency` is 0"),
        (endpoint("concurrency = 100_000"), "t.toml:4:15: 100000 concurrent requests are more than 4096"),
        (endpoint("requests_per_minute = 0"), "t.toml:4:23: `requests_per_minute` is 0"),
        (endpoint("tokens_per_minute = -5"), "t.toml:4:21: "),
        (endpoint("timeout_sec = 0"), "t.toml:4:15: `timeout_sec` is not above 0"),
        (endpoint("timeout_sec = nan"), "t.toml:4:15: `timeout_sec` is not above 0"),
        (endpoint("usd_per_1m_input_tokens = 1"), "t.toml:4:27: `usd_per_1m_output_tokens` is missing"),
        (
            endpoint("usd_per_1m_input_tokens = -1\nusd_per_1m_output_tokens = inf"),
            "t.toml:5:28: `usd_per_1m_output_tokens` is not a number of at least 0",
        ),
        (HEAD.replace("local", "\"a b\""), "t.toml:2:12: `a b` is not a valid endpoint name\nhint: letters"),
        (url("127.0.0.1:8000/v1"), "t.toml:3:12: `base_url` is not a URL"),
        (url("ftp://host/v1"), "t.toml:3:12: `base_url` is not an http or https address"),
        (url("https://me:pw@host/v1"), "t.toml:3:12: `base_url` holds a user name or password"),
        (url("https://host/v1?key=1"), "t.toml:3:12: `base_url` has a query or fragment"),
        (url("https://host/v1/chat/completions"), "t.toml:3:12: `base_url` ends in `/chat/completions`"),
        (
            role("").replace("expert", "exprt"),
            "t.toml:4:8: unknown word `exprt`\nhint: did you mean `expert`?",
        ),
        (role("").replace("max_tokens = 10", ""), "t.toml:4:1: missing key `max_tokens`"),
        (role("").replace("= 10", "= 0"), "t.toml:7:14: `max_tokens` is 0"),
        (role("max_tokens_limit = 9"), "t.toml:8:20: `max_tokens_limit` is less than `max_tokens`"),
        (
            role("").replace("\"local\"", "\"lokal\""),
            "t.toml:5:12: role `expert` names endpoint `lokal`, which is not declared\nhint: did you mean `local`?",
        ),
        (role("").replace("\"m\"", "\" \""), "t.toml:6:9: `model` is empty"),
        (role("temperature = 2.5"), "t.toml:8:15: `temperature` is not between 0 and 2"),
        (role("temperature = nan"), "t.toml:8:15: `temperature` is not between 0 and 2"),
        (role("top_p = 0"), "t.toml:8:9: `top_p` is not above 0"),
        (
            role("extra = { n = 4 }"),
            "t.toml:8:15: `n` is not allowed in `extra`\nhint: the budget assumes one reply per call",
        ),
        (role("[roles.expert.extra]\nstream = true"), "t.toml:9:10: `stream` is not allowed in `extra`"),
        (role("extra = { day = 2026-01-01 }"), "t.toml:8:17: `day` is a date, which JSON does not have"),
        (role("usd_per_1m_output_tokens = 1"), "t.toml:8:28: `usd_per_1m_input_tokens` is missing"),
        (
            role("sampling = { method = \"prefill\", begin = \"I\" }"),
            "t.toml:8:1: the role `expert` writes no requests",
        ),
        (
            role("sampling = { method = \"prefix\", template = \"x\", stop = [] }")
                .replace("expert", "sampler"),
            "t.toml:8:44: `template` lacks `{system}`",
        ),
        (
            role("sampling = { method = \"magpie\" }").replace("expert", "sampler"),
            "t.toml:8:23: unknown word `magpie`",
        ),
    ] {
        let error = Settings::parse("t.toml", &text).unwrap_err().to_string();
        assert!(
            error.starts_with(expected) || error.contains(&format!("\n{expected}")),
            "{text}\n---\n{error}"
        );
        assert!(!error.contains("sk-"), "{error}");
    }
    // All problems are reported at once.
    let many = role("top_p = 3\ntemperature = -1").replace("= 10", "= 0");
    assert_eq!(Settings::parse("t.toml", &many).unwrap_err().problems.len(), 3);
    let missing = Settings::load("/nonexistent/termsmith.toml".as_ref()).unwrap_err().to_string();
    assert!(
        missing.starts_with("/nonexistent/termsmith.toml: ")
            && missing.contains("No such file")
            && missing.contains("hint:"),
        "{missing}"
    );
}

#[test]
fn the_schema_is_fixed() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&settings_schema()).unwrap());
}
