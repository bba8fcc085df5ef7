//! The client: journal, cassette, limits, budget and retries around a request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::budget::{Ledger, Price};
use super::clock::millis;
use super::endpoint::Endpoint;
use super::journal::{Started, call_key, charged, started};
use super::outcome::{AttemptOutcome, UsageCharge, no_response, outcome};
use super::prepared_call::{Origin, PreparedCall};
use super::request::{body, bound};
use super::request_forms::missing;
use super::transport::{Exchange, Transport};
use super::{
    AttemptError, AttemptSeen, Budget, BudgetExceeded, CALL, CallError, CallRecord, CallSeen, CallSite,
    Cassette, ChatRequest, Clock, Cost, Drift, EndpointSettings, ModelRole, Recorder, Reply, RetryPolicy,
    RoleSettings, Settings, SystemClock,
};
use crate::clock::running;
use crate::retry::Again;
use crate::store::Store;

/// Drifts that the run's summary lists. A changed prompt makes all requests drift in the same way.
const MAX_DRIFTS: usize = 20;

/// The requests of a call together may take this many times the endpoint's `timeout_sec`.
const LONG_REQUESTS: u32 = 3;

/// Options of a run's calls.
#[derive(Debug)]
pub struct Options {
    pub budget: Budget,
    pub retry: RetryPolicy,
    pub clock: Arc<dyn Clock>,
    /// Replies come from this recording, and not from endpoints.
    pub cassette: Option<Cassette>,
    /// Records all calls.
    pub recorder: Option<Arc<Recorder>>,
    /// Cancelled when the run stops: requests in flight are completed, and no further one is sent.
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

/// Counts of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Replies that were returned.
    pub replies: u64,
    /// Replies among them that came from the journal.
    pub committed: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Calls that were in flight when an earlier process ended, and were made again.
    pub repeated: u64,
    /// Replies from a cassette to requests that differ from the recorded ones.
    pub drifted: u64,
    /// The first of these differences, with their sites.
    pub drifts: Vec<(CallSite, Drift)>,
    /// Responses that repeated the key, which was then replaced.
    pub keys_replaced: u64,
    /// Cost of this process. If tokens or dollars have a cap, also of earlier ones in the run
    /// folder.
    pub spent: Cost,
}

/// The models of a run.
pub struct Models {
    settings: Settings,
    endpoints: BTreeMap<String, Endpoint>,
    store: Store,
    options: Options,
    ledger: Ledger,
    /// The notes below `started/`.
    started: Mutex<Started>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    replies: AtomicU64,
    committed: AtomicU64,
    sent: AtomicU64,
    repeated: AtomicU64,
    drifted: AtomicU64,
    keys_replaced: AtomicU64,
    drifts: Mutex<Vec<(CallSite, Drift)>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Models {
    /// The models in `settings`, with keys from `env`. `store` gets the replies. The cost of its
    /// earlier calls counts towards the budget.
    pub fn new(
        settings: Settings,
        env: impl Fn(&str) -> Option<String>,
        store: &Store,
        options: Options,
    ) -> Result<Self, CallError> {
        let capped = options.budget.max_tokens.is_some() || options.budget.max_usd.is_some();
        let committed = if capped { charged(store)? } else { Cost::default() };
        let started = started(store)?;
        let spent = started.values().flatten().fold(committed, |sum, seen| sum + seen.charged);
        let endpoints = settings
            .endpoints
            .iter()
            .map(|(name, endpoint)| (name.clone(), Endpoint::new(endpoint.clone(), &env)))
            .collect();
        let ledger = Ledger::new(&options.budget, spent);
        let (store, counts) = (store.clone(), Counts::default());
        Ok(Self { settings, endpoints, store, options, ledger, started: Mutex::new(started), counts })
    }

    /// Whether `role` can be called: it has a model, its endpoint has a key, and if the budget is
    /// in dollars, it has a price. Check this before work begins.
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

    /// The reply to `request`: from the journal, from the cassette, or new.
    ///
    /// Dropping the future cancels the call. A request in flight is then charged in full. A
    /// response that has arrived is committed all the same.
    pub async fn call(&self, site: &CallSite, request: &ChatRequest) -> Result<Reply, CallError> {
        let call = self.prepare(site, request)?;
        let CallSite { role, unit, stage, round, step, sample } = site;
        let span = tracing::debug_span!("call", %role, unit, stage, round, step, sample);
        let reply = self.reply_to(&call).instrument(span).await?;
        self.counts.replies.fetch_add(1, Ordering::Relaxed);
        Ok(reply)
    }

    /// The counts up to now.
    pub fn tally(&self) -> Tally {
        let Counts { replies, committed, sent, repeated, drifted, keys_replaced, drifts } = &self.counts;
        let [replies, committed, sent, repeated, drifted, keys_replaced] =
            [replies, committed, sent, repeated, drifted, keys_replaced]
                .map(|count| count.load(Ordering::Relaxed));
        let drifts = drifts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let spent = self.ledger.spent();
        Tally { replies, committed, sent, repeated, drifted, drifts, keys_replaced, spent }
    }

    async fn reply_to(&self, call: &PreparedCall<'_>) -> Result<Reply, CallError> {
        match self.store.get::<CallRecord>(CALL, &call.key)? {
            Some(record) => self.replay_committed(call, record).await,
            None => match &self.options.cassette {
                Some(cassette) => self.replay_recorded(call, cassette).await,
                None => self.send(call).await,
            },
        }
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

    fn prepare<'m>(
        &'m self,
        site: &'m CallSite,
        request: &ChatRequest,
    ) -> Result<PreparedCall<'m>, CallError> {
        let (decl, endpoint) = self.role(site.role)?;
        let price = self.price(site.role, decl, endpoint)?;
        let api = endpoint.settings.api;
        if let Some(what) = missing(api, request) {
            return Err(CallError::Unsupported { endpoint: decl.endpoint.clone(), api, what });
        }
        let body = body(site, request, decl, &endpoint.settings);
        let bound = bound(&body, request, decl);
        let key = call_key(&decl.endpoint, site, &body)?;
        Ok(PreparedCall { site, endpoint_name: &decl.endpoint, endpoint, body, bound, price, key })
    }

    async fn replay_committed(
        &self,
        call: &PreparedCall<'_>,
        record: CallRecord,
    ) -> Result<Reply, CallError> {
        let exchange = Exchange::of_body(record.body);
        let AttemptOutcome::Reply(reply) = outcome(&exchange, self.options.clock.wall()) else {
            return Err(CallError::Record { key: call.key.clone() });
        };
        if let Some(recorder) = self.options.recorder.clone() {
            let (site, request) = (call.site.clone(), call.body.clone());
            on_disk(move || Ok(recorder.record(&site, &request, &exchange.body)?)).await?;
        }
        self.counts.committed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("reply from the journal");
        // A resumed rollout is charged the time that this reply took at first.
        let seen = self.store.observed::<CallSeen>(&call.key)?;
        let served = seen.as_ref().map_or(Duration::ZERO, CallSeen::served);
        Ok(call.reply(*reply, Origin { committed: true, served, ..Origin::default() }))
    }

    async fn replay_recorded(
        &self,
        call: &PreparedCall<'_>,
        cassette: &Cassette,
    ) -> Result<Reply, CallError> {
        let (body, drift) = cassette.reply(call.site, &call.body)?;
        let exchange = Exchange::of_body(body);
        let reply = match outcome(&exchange, self.options.clock.wall()) {
            AttemptOutcome::Reply(reply) => reply,
            AttemptOutcome::Retryable { error, .. } => {
                return Err(cassette.unreadable(call.site, error.to_string()).into());
            }
            AttemptOutcome::Final { message, .. } => {
                return Err(cassette.unreadable(call.site, message).into());
            }
        };
        let seen = CallSeen { replayed: true, ..CallSeen::default() };
        self.commit(call, exchange.body, seen).await?;
        if let Some(drift) = &drift {
            self.counts.drifted.fetch_add(1, Ordering::Relaxed);
            let mut drifts = self.counts.drifts.lock().unwrap_or_else(PoisonError::into_inner);
            if drifts.len() < MAX_DRIFTS {
                drifts.push((call.site.clone(), drift.clone()));
            }
        }
        Ok(call.reply(*reply, Origin { drift, ..Origin::default() }))
    }

    async fn send(&self, call: &PreparedCall<'_>) -> Result<Reply, CallError> {
        let transport = call.endpoint.transport(call.endpoint_name)?;
        let seen = self.carried_over(call);
        let mut progress = Progress { began: self.options.clock.elapsed(), spent: Duration::ZERO, seen };
        let backoff = &self.options.retry.backoff;
        let mut number = 1;
        // A loop, since the compiler cannot prove that futures of async closures are `Send`.
        loop {
            let (error, again) = match self.attempt(call, transport, &mut progress, number).await {
                Ok(reply) => return Ok(reply),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Retryable { error, retry_after }) => {
                    (error, retry_after.map_or(Again::Yes, Again::After))
                }
            };
            let in_time = !progress.left(call.endpoint.time_limit()).is_zero();
            let pause = backoff.next_pause(call.key.as_str(), number, again).filter(|_| in_time);
            let Some(pause) = pause else {
                let endpoint = call.endpoint_name.to_owned();
                tracing::warn!(endpoint, attempts = number, "no reply after all attempts");
                return Err(CallError::Exhausted { endpoint, attempts: number, last: error });
            };
            tracing::debug!(attempt = number, pause_ms = millis(pause), "retrying");
            self.until_drain(call, self.options.clock.sleep(pause)).await?;
            number += 1;
        }
    }

    /// Sends the request once, within the limits and the budget. Nothing is charged before it is
    /// sent.
    async fn attempt(
        &self,
        call: &PreparedCall<'_>,
        transport: &Transport,
        progress: &mut Progress,
        number: u32,
    ) -> Result<Reply, Failure> {
        let clock = &*self.options.clock;
        let upper_bound = call.price.of(call.bound);
        let slot = self.until_drain(call, call.endpoint.limiter.slot()).await?;
        let Some(slot) = slot else { return Err(call.cancelled().into()) };
        let reserved = self.until_drain(call, self.ledger.reserve(upper_bound)).await?;
        let mut reservation = reserved.map_err(CallError::Budget)?;
        let mut grant = self.until_drain(call, slot.grant(clock, upper_bound.tokens)).await?;
        let limit = self.time_left(call)?.min(progress.left(call.endpoint.time_limit()));
        let sending = CallSeen {
            in_flight: true,
            charged: progress.seen.charged + upper_bound,
            ..progress.seen.clone()
        };
        self.note(call, sending).await?;
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
        reservation.sent();
        grant.sent(clock.elapsed());
        // This counts towards the time limit of a rollout. So it leaves out stops of termsmith.
        let sent = running::elapsed();
        let response = transport.send(&call.body, limit).await;
        let took = running::elapsed().saturating_sub(sent);
        let (outcome, exchange) = match response {
            Ok(exchange) => (outcome(&exchange, clock.wall()), exchange),
            Err(error) => (no_response(error), Exchange::of_body(String::new())),
        };
        self.counts.keys_replaced.fetch_add(u64::from(exchange.repeated_key), Ordering::Relaxed);
        let cost = match outcome.charge() {
            UsageCharge::None => reservation.settle(Cost::default()),
            UsageCharge::Reported(usage) => reservation.settle(call.price.of(usage)),
            UsageCharge::Unknown => reservation.charge_in_full(),
        };
        grant.settle(cost.tokens);
        drop(slot);
        let Progress { began, spent, seen } = progress;
        *spent += took;
        seen.charged = seen.charged + cost;
        seen.attempts.push(AttemptSeen { took_ms: millis(took), fault: outcome.failure() });
        match outcome {
            AttemptOutcome::Reply(reply) => {
                let latency = clock.elapsed().saturating_sub(*began);
                seen.latency_ms = Some(millis(latency));
                seen.request_id.clone_from(&exchange.request_id);
                tracing::debug!(attempt = number, took_ms = millis(took), tokens = cost.tokens, "reply");
                self.commit(call, exchange.body, seen.clone()).await?;
                let origin =
                    Origin { attempts: number, latency: Some(latency), served: took, ..Origin::default() };
                Ok(call.reply(*reply, origin))
            }
            AttemptOutcome::Final { refusal, status, message, .. } => {
                tracing::warn!(status, ?refusal, endpoint = call.endpoint_name, "the request was refused");
                tracing::trace!(message, "text of the refusal");
                self.note(call, seen.clone()).await?;
                Err(call.refused(refusal, status, message).into())
            }
            AttemptOutcome::Retryable { error, wait, .. } => {
                tracing::debug!(attempt = number, kind = error.kind(), "no reply");
                tracing::trace!(%error, "text of the failure");
                self.note(call, seen.clone()).await?;
                let retry_after = wait.map(|asked| asked.min(self.options.retry.retry_after_cap));
                if let Some(asked) = retry_after {
                    call.endpoint.limiter.hold(clock.elapsed() + asked);
                }
                Err(Failure::Retryable { error, retry_after })
            }
        }
    }

    /// The note in `started/` of an earlier attempt at this call. The ledger has its charge
    /// already. If the note cannot be read, the upper bound is charged now.
    fn carried_over(&self, call: &PreparedCall<'_>) -> CallSeen {
        let Some(left) = self.started().get(&call.key).cloned() else { return CallSeen::default() };
        let left = left.unwrap_or_else(|| {
            let upper_bound = call.price.of(call.bound);
            self.ledger.charge(upper_bound);
            CallSeen { in_flight: true, charged: upper_bound, ..CallSeen::default() }
        });
        self.counts.repeated.fetch_add(u64::from(left.in_flight), Ordering::Relaxed);
        CallSeen { charged: left.charged, ..CallSeen::default() }
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time limit of the next request.
    fn time_left(&self, call: &PreparedCall<'_>) -> Result<Duration, CallError> {
        let limit = call.endpoint.time_limit();
        let Some(cap) = self.options.budget.max_wall else { return Ok(limit) };
        let elapsed = self.options.clock.elapsed();
        match cap.checked_sub(elapsed).filter(|left| !left.is_zero()) {
            Some(left) => Ok(limit.min(left)),
            None => Err(CallError::Budget(BudgetExceeded::Wall { elapsed, cap })),
        }
    }

    /// Waits for `work`. Ends earlier if the run is stopped, or its time is up.
    async fn until_drain<T>(
        &self,
        call: &PreparedCall<'_>,
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

    /// Commits a reply, even if this future is dropped.
    async fn commit(&self, call: &PreparedCall<'_>, body: String, seen: CallSeen) -> Result<(), CallError> {
        let (store, key, site) = (self.store.clone(), call.key.clone(), call.site.clone());
        let recording = self.options.recorder.clone().map(|recorder| (recorder, call.body.clone()));
        let endpoint = call.endpoint_name.to_owned();
        self.started().remove(&key);
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

    async fn note(&self, call: &PreparedCall<'_>, seen: CallSeen) -> Result<(), CallError> {
        let (store, key) = (self.store.clone(), call.key.clone());
        let written = seen.clone();
        on_disk(move || Ok(store.note(&key, &written)?)).await?;
        // Remembered only once it is written: without a note, the request is not sent.
        self.started().insert(call.key.clone(), Some(seen));
        Ok(())
    }
}

/// Runs `work` on a thread of its own, so that a slow disk delays no other call.
async fn on_disk(work: impl FnOnce() -> Result<(), CallError> + Send + 'static) -> Result<(), CallError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(CallError::ShuttingDown),
        },
    }
}

/// Why an attempt failed.
enum Failure {
    Retryable { error: AttemptError, retry_after: Option<Duration> },
    Final(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Final(error)
    }
}

/// The attempts of a call up to now.
struct Progress {
    /// When the first attempt began.
    began: Duration,
    /// Time of all requests, without the pauses between them.
    spent: Duration,
    /// The finished attempts. A request in flight is not among them.
    seen: CallSeen,
}

impl Progress {
    /// Time for further requests. `limit` is the time limit of one. A server that sends a byte now
    /// and then takes the whole time of each request, but the call must end.
    fn left(&self, limit: Duration) -> Duration {
        limit.saturating_mul(LONG_REQUESTS).saturating_sub(self.spent)
    }
}
