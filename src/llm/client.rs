//! The client: journal, recording, limits, budget and retries around one request on the wire.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::budget::{Ledger, Price};
use super::endpoint::Endpoint;
use super::fault::{Bill, Outcome, Refusal, lost, outcome};
use super::journal::{Begun, begun, call_key, charged};
use super::request::{body, bound};
use super::response::Replied;
use super::transport::Exchange;
use super::{
    AttemptSeen, Budget, BudgetExceeded, CALL, CallError, CallRecord, CallSeen, CallSite, Cassette,
    ChatRequest, Clock, Cost, Drift, EndpointSettings, ModelRole, Recorder, Reply, RetryPolicy, RoleSettings,
    Settings, SystemClock, Usage,
};
use crate::model::Key;
use crate::store::Store;

/// Drifts that are kept for the end of a run. One changed prompt makes all of a run's requests drift alike.
const MAX_DRIFTS: usize = 20;

/// What may be chosen about a run's calls.
#[derive(Debug)]
pub struct Options {
    pub budget: Budget,
    pub retry: RetryPolicy,
    pub clock: Arc<dyn Clock>,
    /// Answers instead of the endpoints.
    pub cassette: Option<Cassette>,
    /// Takes down every call.
    pub recorder: Option<Arc<Recorder>>,
    /// When it is cancelled, what was sent is waited for, and nothing more is sent.
    pub drain: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            retry: RetryPolicy::default(),
            clock: Arc::new(SystemClock::start()),
            cassette: None,
            recorder: None,
            drain: CancellationToken::new(),
        }
    }
}

/// What the calls of this process came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Replies that were handed out.
    pub replies: u64,
    /// Of these, from the journal.
    pub committed: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Calls that an earlier process had in flight when it ended, and that had to be made again.
    pub repeated: u64,
    /// Replies of a cassette to a request that was not the recorded one.
    pub drifted: u64,
    /// The first of those drifts, and where they were.
    pub drifts: Vec<(CallSite, Drift)>,
    /// BudgetExceeded by this process; where tokens or dollars are capped, also by those before it in the same run folder.
    pub spent: Cost,
}

/// The models of a run.
pub struct Models {
    settings: Settings,
    endpoints: BTreeMap<String, Endpoint>,
    store: Store,
    options: Options,
    ledger: Ledger,
    /// The notes on the disk.
    begun: Mutex<Begun>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    replies: AtomicU64,
    committed: AtomicU64,
    sent: AtomicU64,
    repeated: AtomicU64,
    drifted: AtomicU64,
    drifts: Mutex<Vec<(CallSite, Drift)>>,
}

/// One call, ready to be made.
struct Prepared<'m> {
    site: &'m CallSite,
    name: &'m str,
    endpoint: &'m Endpoint,
    body: Value,
    bound: Usage,
    price: Price,
    key: Key,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Models {
    /// The models that `settings` name, with keys from `env`. Calls are committed in `store`, and what they cost earlier in
    /// the same store counts towards the budget.
    pub fn new(
        settings: Settings,
        env: impl Fn(&str) -> Option<String>,
        store: &Store,
        options: Options,
    ) -> Result<Self, CallError> {
        let capped = options.budget.max_tokens.is_some() || options.budget.max_usd.is_some();
        let committed = if capped { charged(store)? } else { Cost::default() };
        let begun = begun(store)?;
        let spent = begun.values().flatten().fold(committed, |sum, seen| sum + seen.charged);
        let endpoints = settings
            .endpoints
            .iter()
            .map(|(name, endpoint)| (name.clone(), Endpoint::new(endpoint.clone(), &env)))
            .collect();
        let ledger = Ledger::new(&options.budget, spent);
        let (store, counts) = (store.clone(), Counts::default());
        Ok(Self { settings, endpoints, store, options, ledger, begun: Mutex::new(begun), counts })
    }

    /// Whether `role` can be called: it has a model, its endpoint's key is there, and its price is known where the budget is
    /// in dollars. To be asked before work begins.
    pub fn ready(&self, role: ModelRole) -> Result<(), CallError> {
        let (decl, endpoint) = self.role(role)?;
        self.price(role, decl, endpoint)?;
        if self.options.cassette.is_none() {
            endpoint.transport(&decl.endpoint)?;
        }
        Ok(())
    }

    /// The settings of a role and of its endpoint.
    pub fn settings(&self, role: ModelRole) -> Result<(&RoleSettings, &EndpointSettings), CallError> {
        self.role(role).map(|(role, endpoint)| (role, &endpoint.settings))
    }

    /// The reply to `request`: the committed one, the recorded one, or a new one.
    ///
    /// Dropping the future gives up the call. What was sent is then charged in full; a response that has arrived is committed
    /// all the same.
    pub async fn call(&self, site: &CallSite, request: &ChatRequest) -> Result<Reply, CallError> {
        let call = self.prepare(site, request)?;
        let reply = match self.store.get::<CallRecord>(CALL, &call.key)? {
            Some(record) => self.replay(&call, record).await?,
            None => match &self.options.cassette {
                Some(cassette) => self.play(&call, cassette).await?,
                None => self.send(&call).await?,
            },
        };
        self.counts.replies.fetch_add(1, Ordering::Relaxed);
        Ok(reply)
    }

    /// What the calls came to so far.
    pub fn tally(&self) -> Tally {
        let Counts { replies, committed, sent, repeated, drifted, drifts } = &self.counts;
        let [replies, committed, sent, repeated, drifted] =
            [replies, committed, sent, repeated, drifted].map(|count| count.load(Ordering::Relaxed));
        let drifts = drifts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Tally { replies, committed, sent, repeated, drifted, drifts, spent: self.ledger.spent() }
    }

    fn role(&self, role: ModelRole) -> Result<(&RoleSettings, &Endpoint), CallError> {
        let decl = self.settings.roles.get(&role).ok_or(CallError::NoRole { role })?;
        let endpoint = self.endpoints.get(&decl.endpoint).ok_or(CallError::NoRole { role })?;
        Ok((decl, endpoint))
    }

    fn price(&self, role: ModelRole, decl: &RoleSettings, endpoint: &Endpoint) -> Result<Price, CallError> {
        match decl.price(&endpoint.settings) {
            Some(price) => Ok(price),
            None if self.options.budget.max_usd.is_none() => Ok(Price::default()),
            None => Err(CallError::NoPrice { role, endpoint: decl.endpoint.clone() }),
        }
    }

    fn prepare<'m>(&'m self, site: &'m CallSite, request: &ChatRequest) -> Result<Prepared<'m>, CallError> {
        let (decl, endpoint) = self.role(site.role)?;
        let price = self.price(site.role, decl, endpoint)?;
        let body = body(site, request, decl, &endpoint.settings);
        let bound = bound(&body, request, decl);
        let key = call_key(&decl.endpoint, site, &body)?;
        Ok(Prepared { site, name: &decl.endpoint, endpoint, body, bound, price, key })
    }

    async fn replay(&self, call: &Prepared<'_>, record: CallRecord) -> Result<Reply, CallError> {
        let exchange = Exchange::of_body(record.body);
        let Outcome::Replied(said) = outcome(&exchange, self.options.clock.wall()) else {
            return Err(CallError::Record { key: call.key.clone() });
        };
        if let Some(recorder) = self.options.recorder.clone() {
            let (site, request) = (call.site.clone(), call.body.clone());
            on_disk(move || Ok(recorder.record(&site, &request, &exchange.body)?)).await?;
        }
        self.counts.committed.fetch_add(1, Ordering::Relaxed);
        Ok(call.reply(*said, Made { committed: true, ..Made::default() }))
    }

    async fn play(&self, call: &Prepared<'_>, cassette: &Cassette) -> Result<Reply, CallError> {
        let (body, drift) = cassette.play(call.site, &call.body)?;
        let exchange = Exchange::of_body(body);
        let said = match outcome(&exchange, self.options.clock.wall()) {
            Outcome::Replied(said) => said,
            Outcome::Retryable { fault, .. } => {
                return Err(cassette.unreadable(call.site, fault.to_string()).into());
            }
            Outcome::Final { message, .. } => return Err(cassette.unreadable(call.site, message).into()),
        };
        let seen = CallSeen { played: true, ..CallSeen::default() };
        self.commit(call, exchange.body, seen).await?;
        if let Some(drift) = &drift {
            self.counts.drifted.fetch_add(1, Ordering::Relaxed);
            let mut drifts = self.counts.drifts.lock().unwrap_or_else(PoisonError::into_inner);
            if drifts.len() < MAX_DRIFTS {
                drifts.push((call.site.clone(), drift.clone()));
            }
        }
        Ok(call.reply(*said, Made { drift, ..Made::default() }))
    }

    async fn send(&self, call: &Prepared<'_>) -> Result<Reply, CallError> {
        let clock = &*self.options.clock;
        let transport = call.endpoint.transport(call.name)?;
        let mut seen = self.inherit(call);
        let mut charged = seen.charged;
        let began = clock.elapsed();
        let worst = call.price.of(call.bound);
        loop {
            let pass = self.until_drain(call, call.endpoint.limiter.enter(clock, worst.tokens)).await?;
            let Some(pass) = pass else { return Err(call.cancelled()) };
            let room =
                self.until_drain(call, self.ledger.reserve(worst)).await?.map_err(CallError::Budget)?;
            let limit = self.time_left(call)?;
            seen.in_flight = true;
            seen.charged = charged + worst;
            self.note(call, seen.clone()).await?;
            self.counts.sent.fetch_add(1, Ordering::Relaxed);
            let sent = clock.elapsed();
            let exchange = transport.send(&call.body, limit).await;
            let took = clock.elapsed().saturating_sub(sent);
            let (outcome, exchange) = match exchange {
                Ok(exchange) => (outcome(&exchange, clock.wall()), Some(exchange)),
                Err(error) => (lost(error), None),
            };
            let cost = match outcome.bill() {
                Bill::Nothing => room.settle(Cost::default()),
                Bill::Counted(usage) => room.settle(call.price.of(usage)),
                Bill::Unseen => room.charge_in_full(),
            };
            pass.settle(cost.tokens);
            drop(pass);
            charged = charged + cost;
            seen.charged = charged;
            seen.in_flight = false;
            seen.attempts.push(AttemptSeen { took_ms: millis(took), fault: outcome.complaint() });
            let attempts = seen.attempts.len().try_into().unwrap_or(u32::MAX);
            match (outcome, exchange) {
                (Outcome::Replied(said), Some(exchange)) => {
                    let latency = clock.elapsed().saturating_sub(began);
                    seen.latency_ms = Some(millis(latency));
                    seen.request_id.clone_from(&exchange.request_id);
                    self.commit(call, exchange.body, seen).await?;
                    let made = Made { attempts, latency: Some(latency), ..Made::default() };
                    return Ok(call.reply(*said, made));
                }
                (Outcome::Final { refusal, status, message, .. }, _) => {
                    self.note(call, seen).await?;
                    return Err(call.final_error(&refusal, status, message));
                }
                (Outcome::Retryable { fault, wait, .. }, _) => {
                    self.note(call, seen.clone()).await?;
                    if attempts >= self.options.retry.attempts {
                        let endpoint = call.name.to_owned();
                        return Err(CallError::Exhausted { endpoint, attempts, last: fault });
                    }
                    if let Some(asked) = wait {
                        let asked = asked.min(self.options.retry.retry_after_cap);
                        call.endpoint.limiter.hold(clock.elapsed() + asked);
                    }
                    let wait = self.options.retry.wait(&call.key, attempts, wait);
                    self.until_drain(call, clock.sleep(wait)).await?;
                }
                // A reply without an exchange there is not.
                (Outcome::Replied(_), None) => return Err(call.cancelled()),
            }
        }
    }

    /// What was left of this call when it was made before. It is in the ledger already, unless only the note's existence is known.
    fn inherit(&self, call: &Prepared<'_>) -> CallSeen {
        let Some(left) = self.begun().get(&call.key).cloned() else { return CallSeen::default() };
        let left = left.unwrap_or_else(|| {
            let worst = call.price.of(call.bound);
            self.ledger.charge(worst);
            CallSeen { in_flight: true, charged: worst, ..CallSeen::default() }
        });
        self.counts.repeated.fetch_add(u64::from(left.in_flight), Ordering::Relaxed);
        CallSeen { charged: left.charged, ..CallSeen::default() }
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds that the next request may take.
    fn time_left(&self, call: &Prepared<'_>) -> Result<Duration, CallError> {
        let limit = Duration::try_from_secs_f64(call.endpoint.settings.timeout_sec).unwrap_or(Duration::MAX);
        let Some(cap) = self.options.budget.max_wall else { return Ok(limit) };
        let elapsed = self.options.clock.elapsed();
        match cap.checked_sub(elapsed).filter(|left| !left.is_zero()) {
            Some(left) => Ok(limit.min(left)),
            None => Err(CallError::Budget(BudgetExceeded::Wall { elapsed, cap })),
        }
    }

    /// Waits for `work`, but not beyond the end of the run.
    async fn until_drain<T>(
        &self,
        call: &Prepared<'_>,
        work: impl Future<Output = T>,
    ) -> Result<T, CallError> {
        let wall = async {
            match self.options.budget.max_wall {
                Some(cap) => {
                    let left = cap.saturating_sub(self.options.clock.elapsed());
                    self.options.clock.sleep(left).await;
                    BudgetExceeded::Wall { elapsed: self.options.clock.elapsed(), cap }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.options.drain.cancelled() => Err(call.cancelled()),
            done = work => Ok(done),
            spent = wall => Err(CallError::Budget(spent)),
        }
    }

    /// Commits a reply. Once this is called it happens, even if nobody waits for it any more.
    async fn commit(&self, call: &Prepared<'_>, body: String, seen: CallSeen) -> Result<(), CallError> {
        let (store, key, site) = (self.store.clone(), call.key.clone(), call.site.clone());
        let recording = self.options.recorder.clone().map(|recorder| (recorder, call.body.clone()));
        let endpoint = call.name.to_owned();
        self.begun().remove(&key);
        on_disk(move || {
            store.observe(&key, &seen)?;
            let record = CallRecord { site, endpoint, body };
            store.put(CALL, &key, &record)?;
            store.forget(&key)?;
            if let Some((recorder, request)) = recording {
                recorder.record(&record.site, &request, &record.body)?;
            }
            Ok(())
        })
        .await
    }

    async fn note(&self, call: &Prepared<'_>, seen: CallSeen) -> Result<(), CallError> {
        let (store, key) = (self.store.clone(), call.key.clone());
        self.begun().insert(key.clone(), Some(seen.clone()));
        on_disk(move || Ok(store.note(&key, &seen)?)).await
    }
}

/// Does `work` where waiting for a disk holds up no other call.
async fn on_disk(work: impl FnOnce() -> Result<(), CallError> + Send + 'static) -> Result<(), CallError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CallError::ShuttingDown),
        },
    }
}

/// How a reply came about.
#[derive(Default)]
struct Made {
    committed: bool,
    attempts: u32,
    latency: Option<Duration>,
    drift: Option<Drift>,
}

impl Prepared<'_> {
    fn reply(&self, said: Replied, made: Made) -> Reply {
        let named = || self.body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        Reply {
            key: self.key.clone(),
            message: said.message,
            finish: said.finish,
            usage: said.usage,
            prompt_token_ids: said.prompt_token_ids,
            completion_token_ids: said.completion_token_ids,
            logprobs: said.logprobs,
            model: said.model.filter(|model| !model.is_empty()).unwrap_or_else(named),
            committed: made.committed,
            attempts: made.attempts,
            latency: made.latency,
            drift: made.drift,
        }
    }

    fn cancelled(&self) -> CallError {
        CallError::Cancelled(Box::new(self.site.clone()))
    }

    fn final_error(&self, refusal: &Refusal, status: u16, message: String) -> CallError {
        let endpoint = self.name.to_owned();
        match refusal {
            Refusal::ContextLength => CallError::ContextLength { endpoint, message },
            Refusal::ContentFilter => CallError::ContentFilter { endpoint, message },
            Refusal::Auth => {
                let variable = self.endpoint.settings.api_key_env.clone();
                CallError::Auth { endpoint, status, message, variable }
            }
            Refusal::Other => CallError::Refused { endpoint, status, message },
        }
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
