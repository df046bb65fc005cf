//! Serves a zone file: `serve ZONE ADDRESS [DOT_ADDRESS CHAIN KEY]`. It ends when its standard input does,
//! and then prints what it counted.
//!
//! The environment variables `DELAY`, `LOSS` and `STALL` set the programmed delay, loss and stall, `THREADS`
//! the number of threads.

use std::error::Error;
use std::io::Read;

use dnslab_responder::{CertificateFiles, Config, Server, Zone};
use dnslab_wire::Transport;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [zone, listen, dot @ ..] = arguments.as_slice() else {
        return Err("usage: serve ZONE ADDRESS [DOT_ADDRESS CHAIN KEY]".into());
    };
    let zone = Zone::parse(&std::fs::read(zone)?, None)?;
    println!("{zone:?}, {} octets", zone.memory());
    let mut config = Config::new(zone);
    config.listen.push(listen.parse()?);
    if let [address, chain, key] = dot {
        config.dot_listen.push(address.parse()?);
        config.certificate = Some(CertificateFiles { chain: chain.into(), key: key.into() });
    }
    let variable = |name| std::env::var(name).ok();
    if let Some(delay) = variable("DELAY") {
        config.program.delay = delay.parse()?;
    }
    if let Some(loss) = variable("LOSS") {
        config.program.loss = loss.parse()?;
    }
    if let Some(stall) = variable("STALL") {
        config.program.stall = Some(stall.parse()?);
    }
    if let Some(threads) = variable("THREADS") {
        config.threads = threads.parse()?;
    }
    let server = Server::bind(config)?;
    let [plain, dot] =
        [Transport::Udp, Transport::Dot].map(|transport| server.addresses(transport));
    println!("UDP and TCP {plain:?}, DoT {dot:?}");
    let stop = server.stop_handle();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.stop();
    });
    println!("{:#?}", server.run()?);
    Ok(())
}
