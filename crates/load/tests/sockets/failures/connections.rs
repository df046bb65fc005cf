//! Connections that end while something is in the kernel, or in one direction.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_load::LoadResult;
use dnslab_wire::Transport;

use crate::failures::applied::{apply, both, job, last_end, open};
use crate::failures::server::{answer, frame, read_query, tcp_server};

/// What a failing test shows of a result.
fn summary(result: &LoadResult) -> String {
    let counters = both(result);
    format!("{:?} {:?} {:?}", counters.outcomes, counters.connections, last_end(result))
}

const CLOSED: &str = "the server closed the connection";

#[test]
fn answers_that_came_before_the_end_are_answers() {
    // The server answers some queries, leaves others unread and closes, which resets the connection: what it
    // wrote before is in the client's kernel.
    let written = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&written);
    let target = tcp_server(move |mut stream| {
        let queries: Vec<_> = (0..10).map_while(|_| read_query(&mut stream)).collect();
        // The last connection stands until the load has ended.
        if queries.len() < 10 {
            return;
        }
        let mut answers = Vec::new();
        for query in &queries {
            answers.extend(frame(&answer(query, 0)));
        }
        if stream.write_all(&answers).is_ok() {
            counted.fetch_add(queries.len() as u64, Ordering::Relaxed);
        }
    });
    let result = apply(&job(target, Transport::Tcp).with(|load| {
        open(load, 20_000.0);
        load.timeout = Duration::from_secs(5);
    }));
    let outcomes = both(&result).outcomes;
    assert!(outcomes.answered > 100 && outcomes.connection_lost > 0, "{}", summary(&result));
    assert_eq!(outcomes.answered, written.load(Ordering::Relaxed), "{}", summary(&result));
}

#[test]
fn a_server_that_writes_nothing_more_is_one_that_closed() {
    // Half-closed: the server has sent its FIN, and goes on reading.
    let target = tcp_server(|mut stream| {
        let Some(query) = read_query(&mut stream) else { return };
        stream.write_all(&frame(&answer(&query, 0))).ok();
        stream.shutdown(Shutdown::Write).ok();
        while read_query(&mut stream).is_some() {}
        thread::sleep(Duration::from_millis(10));
    });
    let result = apply(&job(target, Transport::Tcp));
    let counters = both(&result);
    assert!(counters.outcomes.answered > 3, "{}", summary(&result));
    assert!(counters.connections.lost > 3, "{}", summary(&result));
    assert_eq!(last_end(&result), CLOSED);
}
