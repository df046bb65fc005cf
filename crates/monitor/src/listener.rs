//! The HTTP server that metrics are fetched from.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dnslab_metrics::{Format, Snapshot};
use dnslab_socket::set_idle_policy;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// Connections at once. A scraper needs one. A further one takes the place of the oldest.
const MAX_CONNECTIONS: usize = 16;

/// The head of a request must come within this time.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);

/// Whoever has not taken the answer after this time gets no more of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often to look whether a wait is over.
const LOOK: Duration = Duration::from_millis(50);

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not to be had.
    #[error("cannot serve metrics at {address}: {source}\n  hint:    {}", remedy(.source))]
    Bind {
        /// As it was asked for.
        address: SocketAddr,
        /// What the kernel says.
        source: io::Error,
    },
    /// There is no thread or descriptor left.
    #[error("cannot serve metrics: {0}")]
    Start(io::Error),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there: choose another port with --metrics-listen, or 0 for any that is free"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 are for root: choose another one",
        _ => "give an address of this machine, for instance 127.0.0.1:9353",
    }
}

/// A running server of `/metrics`.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stop: Notify,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Snapshot,
    /// Number of the snapshot, from 1.
    published: u64,
    /// Number of the last one that was fetched; 0 for none.
    fetched: u64,
}

impl Shared {
    /// Held for as long as a few fields take, by either side.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Serves at this address until it is dropped.
    ///
    /// # Errors
    /// When the address is not to be had.
    pub fn start(address: SocketAddr) -> Result<Self, ListenError> {
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(bind)?;
        let local = listener.local_addr().map_err(ListenError::Start)?;
        listener.set_nonblocking(true).map_err(ListenError::Start)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(ListenError::Start)?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let serve = move || {
            set_idle_policy();
            runtime.block_on(serve(listener, own));
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(serve);
        let thread = Some(thread.map_err(ListenError::Start)?);
        Ok(Self { shared, address: local, thread })
    }

    /// Where it serves; with the port that it got, if any was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves this from now on.
    pub fn publish(&self, snapshot: Snapshot) {
        let before = {
            let mut state = self.shared.state();
            state.published += 1;
            std::mem::replace(&mut state.snapshot, snapshot)
        };
        drop(before);
    }

    /// Somebody has fetched metrics.
    #[must_use]
    pub fn was_fetched(&self) -> bool {
        self.shared.state().fetched > 0
    }

    /// Waits until the latest metrics have been fetched, at most for so long, and not once `is_over`. True if they have.
    pub fn wait_for_fetch(&self, patience: Duration, is_over: &dyn Fn() -> bool) -> bool {
        let began = Instant::now();
        loop {
            let is_fetched = {
                let state = self.shared.state();
                state.fetched == state.published
            };
            if is_fetched || began.elapsed() >= patience || is_over() {
                return is_fetched;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Serves until it is told to stop.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accepting = tokio::spawn(accept(listener, Arc::clone(&places), Arc::clone(&shared)));
    shared.stop.notified().await;
    accepting.abort();
    // Who is being answered gets the end of it.
    let last = places.acquire_many(MAX_CONNECTIONS as u32);
    tokio::time::timeout(LOOK, last).await.ok();
}

/// A connection that may still be open.
struct Connection {
    /// A request has come.
    has_asked: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

async fn accept(listener: tokio::net::TcpListener, places: Arc<Semaphore>, shared: Arc<Shared>) {
    // The oldest first.
    let mut open: Vec<Connection> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No descriptor is left, or the client has gone.
            tokio::time::sleep(LOOK).await;
            continue;
        };
        open.retain(|connection| !connection.task.is_finished());
        if open.len() >= MAX_CONNECTIONS {
            // Clients that say nothing, or do not take their answer, keep nobody else away.
            let is_silent = |connection: &Connection| !connection.has_asked.load(Ordering::Relaxed);
            open.remove(open.iter().position(is_silent).unwrap_or(0)).task.abort();
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let has_asked = Arc::new(AtomicBool::new(false));
        let (shared, asks) = (Arc::clone(&shared), Arc::clone(&has_asked));
        let service = service_fn(move |request| {
            asks.store(true, Ordering::Relaxed);
            let response = answer(&request, &shared);
            async move { Ok::<_, Infallible>(response) }
        });
        // A connection that stays open for the next request could not be told from one that never asks.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let task = tokio::spawn(async move {
            // What a client does wrong is its own trouble.
            tokio::time::timeout(PATIENCE, connection).await.ok();
            drop(place);
        });
        open.push(Connection { has_asked, task });
    }
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is served\n");
    }
    match request.uri().path() {
        "/metrics" => {}
        "/" => return plain(StatusCode::OK, "the metrics of dnslab are at /metrics\n"),
        _ => return plain(StatusCode::NOT_FOUND, "there is only /metrics\n"),
    }
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    let snapshot = {
        let mut state = shared.state();
        // A look with a browser is no scrape that a wait is for, but cannot be told from one.
        state.fetched = state.published;
        state.snapshot.clone()
    };
    let mut response = Response::new(Full::new(Bytes::from(snapshot.encode(format))));
    let content_type = header::HeaderValue::from_static(format.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    fn connect(listener: &Listener) -> TcpStream {
        let stream = TcpStream::connect(listener.address()).unwrap();
        // Much longer than it takes, and much shorter than a minute.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// All that comes until the end.
    fn read(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn fetch(listener: &Listener) -> String {
        let mut stream = connect(listener);
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        read(stream)
    }

    #[test]
    fn silent_connections_keep_no_scraper_away() {
        let listener = Listener::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut silent: Vec<TcpStream> =
            (0..2 * MAX_CONNECTIONS).map(|_| connect(&listener)).collect();
        for _ in 0..3 {
            assert!(fetch(&listener).starts_with("HTTP/1.1 200 OK"));
        }
        assert_eq!(read(silent.remove(0)), "", "the oldest is still open");
    }

    #[test]
    fn half_a_request_is_not_waited_for() {
        let listener = Listener::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut stream = connect(&listener);
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
        read(stream);
    }
}
