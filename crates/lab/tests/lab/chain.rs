//! A chain of hosts with a link to measure.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use dnslab_lab::cpus;
use dnslab_lab::hosts::{Hosts, LinkSettings};
use dnslab_lab::network::Visit;

use crate::program::guard;

/// Client, server and upstream, with `link` between the first two and a plain one between the others.
pub(crate) fn chain(folder: &Path, link: LinkSettings, ipv6: bool) -> Hosts {
    let links = [link, LinkSettings::default()];
    let names = ["client", "server", "upstream"];
    Hosts::make(&names, &links, ipv6, 7, &[link_cpu()], folder, &guard()).unwrap()
}

pub(crate) fn link_cpu() -> usize {
    *cpus::allowed().last().unwrap()
}

pub(crate) fn socket(hosts: &Hosts, host: &str) -> UdpSocket {
    let _visit = Visit::to(hosts.network(host).unwrap()).unwrap();
    let socket = UdpSocket::bind((hosts.address(host).unwrap(), 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}
