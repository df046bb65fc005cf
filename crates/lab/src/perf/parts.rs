//! Which part of a server a sample belongs to.
//!
//! The table of each server is with its adapter. It says which functions of which libraries are which part; the first
//! row that fits counts. Debian's servers have few symbols, so most rows name a library only. In the kernel the stack decides: all that is
//! done below the network stack is the network's.

use dnslab_record::CostPart::{
    self, Crypto, DnsLogic, EventLoop, HttpQuic, Kernel, KernelNetwork, KernelRest, Log, Memory,
    Rest, Tls,
};

use super::script::Frame;
use crate::server::{CostRow, ServerKind, adapter, functions, library};

/// Functions of the C library, and of others that allocate.
const ALLOCATION: &[&str] = &[
    "malloc",
    "free",
    "cfree",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "_int_malloc",
    "_int_free",
    "_int_realloc",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "malloc_consolidate",
    "sysmalloc",
    "systrim",
    "tcache",
    "unlink_chunk",
    "operator new",
    "operator delete",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "__mem",
    "bcmp",
    "explicit_bzero",
    "alloc_perturb",
    "checked_request2size",
    "ptmalloc",
];

/// What enters the kernel for sockets, timers and threads, and waits there.
const CALLS: &[&str] = &[
    "epoll",
    "__epoll",
    "poll",
    "__poll",
    "ppoll",
    "select",
    "__select",
    "pselect",
    "recv",
    "__recv",
    "__libc_recv",
    "send",
    "__send",
    "__libc_send",
    "read",
    "__read",
    "__libc_read",
    "readv",
    "write",
    "__write",
    "__libc_write",
    "writev",
    "__writev",
    "accept",
    "timerfd",
    "clock_gettime",
    "__clock_gettime",
    "gettimeofday",
    "__gettimeofday",
    "time",
    "pthread_",
    "__pthread",
    "___pthread",
    "__lll_",
    "sem_",
    "__futex",
    "sched_",
    "syscall",
    "__syscall",
    "__vdso",
    "eventfd",
];

/// What all servers may have.
const EVERYWHERE: &[CostRow] = &[
    library("libssl", Tls),
    // Its own assembly for x86.
    functions(
        "libgnutls",
        &[
            "aesni_",
            "_aesni_",
            "vpaes_",
            "_vpaes_",
            "gcm_",
            "sha1_block",
            "sha256_block",
            "sha512_block",
        ],
        Crypto,
    ),
    library("libgnutls", Tls),
    library("libcrypto", Crypto),
    library("libnettle", Crypto),
    library("libhogweed", Crypto),
    library("libgmp", Crypto),
    library("libgcrypt", Crypto),
    library("libsodium", Crypto),
    library("libnghttp2", HttpQuic),
    library("libnghttp3", HttpQuic),
    library("libngtcp2", HttpQuic),
    library("libh2o", HttpQuic),
    library("libuv", EventLoop),
    library("libevent", EventLoop),
    library("libev.", EventLoop),
    // Hash tables.
    library("liburcu-cds", DnsLogic),
    // Threads that read without locks.
    library("liburcu", EventLoop),
    library("libjemalloc", Memory),
    library("libtcmalloc", Memory),
    library("libmimalloc", Memory),
    library("libfstrm", Log),
    library("libprotobuf-c", Log),
    functions("libc.", ALLOCATION, Memory),
    functions("libc-", ALLOCATION, Memory),
    functions("libstdc++", ALLOCATION, Memory),
    functions("libc.", CALLS, EventLoop),
    functions("libc-", CALLS, EventLoop),
    library("libpthread", EventLoop),
    // The clock, which the loop reads for its timers.
    library("[vdso]", EventLoop),
];

/// The rows of a server before those that all have.
fn own(kind: ServerKind) -> &'static [CostRow] {
    adapter(kind).cost_rows()
}

/// Those of all servers that are known by their own names, for one that somebody else started.
fn known_by_name() -> impl Iterator<Item = &'static [CostRow]> {
    ServerKind::ALL.into_iter().filter(|kind| *kind != ServerKind::Embedded).map(own)
}

/// Functions of the kernel that are the network's, by how their names begin.
const NETWORK: &[&str] = &[
    "tcp_",
    "__tcp",
    "udp_",
    "__udp",
    "udpv6",
    "udp4",
    "udp6",
    "udplite",
    "ip_",
    "__ip",
    "ip6",
    "ipv4_",
    "ipv6_",
    "inet",
    "__inet",
    "icmp",
    "sock",
    "__sock",
    "__sys_send",
    "__sys_recv",
    "___sys_send",
    "___sys_recv",
    "____sys_send",
    "____sys_recv",
    "__x64_sys_send",
    "__x64_sys_recv",
    "__arm64_sys_send",
    "__arm64_sys_recv",
    "__se_sys_send",
    "__se_sys_recv",
    "do_recvmmsg",
    "__sys_accept",
    "__sys_connect",
    "__sys_shutdown",
    "skb",
    "__skb",
    "kfree_skb",
    "consume_skb",
    "__kfree_skb",
    "sk_skb",
    "alloc_skb",
    "__alloc_skb",
    "napi",
    "__napi",
    "net_rx",
    "net_tx",
    "netif",
    "__netif",
    "process_backlog",
    "dev_",
    "__dev_",
    "loopback",
    "veth",
    "nf_",
    "__nf",
    "nft_",
    "ipt_",
    "sk_",
    "__sk_",
    "lock_sock",
    "release_sock",
    "__release_sock",
    "bbr_",
    "cubictcp",
    "bictcp",
    "fib_",
    "__fib",
    "neigh_",
    "__neigh",
    "dst_",
    "xfrm",
    "packet_",
    "tpacket",
    "xdp_",
    "xsk_",
    "qdisc",
    "__qdisc",
    "sch_direct",
    "fq_",
    "pfifo",
    "virtnet",
    "virtio_net",
    "validate_xmit",
    "enqueue_to_backlog",
    "gro_",
    "security_sock",
    "security_socket",
    "selinux_sock",
    "apparmor_sock",
    "csum_",
    "__csum",
];

/// Functions of the kernel that are neither the network's nor a log's, though their callers would say so: threads
/// that wake others.
const WAKING: &[&str] = &["eventfd_", "do_eventfd"];

/// Functions of the kernel that write to files, pipes and local sockets: a server under load writes nothing but logs.
const WRITING: &[&str] = &[
    "unix_",
    "generic_perform_write",
    "generic_file_write",
    "ext4_",
    "jbd2_",
    "xfs_",
    "btrfs_",
    "f2fs_",
    "iomap_",
    "shmem_file",
    "fuse_",
    "ovl_",
    "overlay",
    "nfs_",
    "pipe_write",
    "anon_pipe_write",
    "vfs_fsync",
    "do_fsync",
];

/// The map of one server.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    tables: Vec<&'static [CostRow]>,
}

impl Parts {
    /// That of a server, or of all of them if it is not known which one it is.
    pub(super) fn of(kind: Option<ServerKind>) -> Self {
        let own = match kind {
            Some(kind) => vec![own(kind)],
            None => known_by_name().collect(),
        };
        Self { tables: own.into_iter().chain([EVERYWHERE]).collect() }
    }

    /// The part of a stack, the innermost frame first. `None` is a sample without any frame.
    pub(super) fn part(&self, frames: &[Frame]) -> CostPart {
        match frames.first() {
            None => Rest,
            Some(first) if first.is_kernel => of_kernel(frames),
            Some(first) => self.of_user(first),
        }
    }

    fn of_user(&self, frame: &Frame) -> CostPart {
        let symbol = plain(&frame.symbol);
        let fits = |row: &&CostRow| {
            frame.library.starts_with(row.library)
                && (row.symbols.is_empty() || begins(symbol, row.symbols))
        };
        let mut rows = self.tables.iter().flat_map(|table| table.iter());
        rows.find(fits).map_or(Rest, |row| row.part)
    }
}

/// A function's name without what Rust puts before it, where an implementation is named by its type.
fn plain(symbol: &str) -> &str {
    // Names of glibc inside itself.
    let symbol = symbol.strip_prefix("__GI_").unwrap_or(symbol);
    let begin = symbol.trim_start_matches(['<', '&', '*', '_']);
    // The underscores of C stay.
    if begin.len() == symbol.trim_start_matches('_').len() { symbol } else { begin }
}

fn begins(symbol: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| symbol.starts_with(begin))
}

/// The innermost frame that says what it is for decides.
fn of_kernel(frames: &[Frame]) -> CostPart {
    let kernel = || frames.iter().take_while(|frame| frame.is_kernel);
    if kernel().all(|frame| frame.symbol.is_empty()) {
        return Kernel;
    }
    let part = kernel().find_map(|frame| {
        let symbol = frame.symbol.as_str();
        match symbol {
            _ if begins(symbol, WAKING) => Some(KernelRest),
            _ if begins(symbol, NETWORK) => Some(KernelNetwork),
            _ if begins(symbol, WRITING) => Some(Log),
            _ => None,
        }
    });
    part.unwrap_or(KernelRest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame {
        let (library, symbol) = text.split_once(' ').unwrap_or((text, ""));
        let (library, symbol) = (library.to_owned(), symbol.to_owned());
        Frame { is_kernel: library == "kernel", library, symbol }
    }

    /// The part of a stack of `LIBRARY SYMBOL`, the innermost first.
    fn part(kind: Option<ServerKind>, stack: &[&str]) -> CostPart {
        let frames: Vec<Frame> = stack.iter().map(|text| frame(text)).collect();
        Parts::of(kind).part(&frames)
    }

    #[test]
    fn functions_and_libraries_of_servers() {
        use ServerKind as Kind;
        let cases = [
            (Kind::Bind, "libisc-9.18.49-1~deb12u3-Debian.so", EventLoop),
            (Kind::Bind, "libisc-9.18.49.so isc__nm_udp_read_cb", EventLoop),
            (Kind::Bind, "libisc-9.18.49.so isc_log_write", Log),
            (Kind::Bind, "libisc-9.18.49.so isc__mem_get", Memory),
            (Kind::Bind, "libdns-9.18.49.so dns_name_fullhash", DnsLogic),
            (Kind::Bind, "libns-9.18.49.so", DnsLogic),
            (Kind::Bind, "named", DnsLogic),
            (Kind::Bind, "libuv.so.1.0.0 uv_run", EventLoop),
            (Kind::Bind, "libcrypto.so.3 EVP_EncryptUpdate", Crypto),
            (Kind::Bind, "libssl.so.3", Tls),
            (Kind::Bind, "libjemalloc.so.2 malloc", Memory),
            (Kind::Bind, "libc.so.6 __memmove_avx_unaligned_erms", Memory),
            (Kind::Bind, "libc.so.6 recvmsg", EventLoop),
            (Kind::Bind, "libc.so.6 pthread_mutex_lock", EventLoop),
            (Kind::Bind, "libc.so.6 __GI___pthread_mutex_unlock_usercnt", EventLoop),
            (Kind::Bind, "libc.so.6 qsort", Rest),
            (Kind::Bind, "libc.so.6", Rest),
            (Kind::Bind, "[vdso]", EventLoop),
            (Kind::Bind, "", Rest),
            (Kind::Knot, "knotd udp_recvmmsg_handle", EventLoop),
            (Kind::Knot, "knotd knot_layer_consume", DnsLogic),
            (Kind::Knot, "libgnutls.so.30.34.3", Tls),
            (Kind::Nsd, "nsd", DnsLogic),
            (Kind::Nsd, "libevent-2.1.so.7.0.1", EventLoop),
            (Kind::Unbound, "unbound comm_point_udp_callback", EventLoop),
            (Kind::KnotResolver, "libluajit-5.1.so.2.1.0", DnsLogic),
            (Kind::Dnsdist, "libh2o-evloop.so.0.13.6", HttpQuic),
            (Kind::CoreDns, "coredns crypto/tls.(*halfConn).encrypt", Tls),
            (Kind::CoreDns, "coredns crypto/internal/fips140/aes/gcm.gcmAesEnc", Crypto),
            (Kind::CoreDns, "coredns runtime.mallocgc", Memory),
            (Kind::CoreDns, "coredns runtime.findRunnable", EventLoop),
            (Kind::CoreDns, "coredns github.com/miekg/dns.(*Msg).Pack", DnsLogic),
            (Kind::Embedded, "dnslab rustls::conn::ConnectionCommon<Data>::read_tls", Tls),
            (Kind::Embedded, "dnslab <rustls::record_layer::RecordLayer>::encrypt", Tls),
            (Kind::Embedded, "dnslab ring_core_0_17_14__aes_gcm_enc_update_vaes_avx2", Crypto),
            (Kind::Embedded, "dnslab dnslab_responder::server::worker::Worker::run", EventLoop),
            (Kind::Embedded, "dnslab dnslab_responder::answer::answer", DnsLogic),
            (Kind::Embedded, "dnslab core::slice::sort", Rest),
        ];
        for (kind, stack, expected) in cases {
            assert_eq!(part(Some(kind), &[stack]), expected, "{kind:?} {stack}");
        }
        assert_eq!(part(None, &["libisc-9.18.49.so"]), EventLoop);
        assert_eq!(part(None, &["knotd"]), DnsLogic);
        assert_eq!(part(None, &[]), Rest);
    }

    #[test]
    fn the_innermost_function_of_the_kernel_that_says_something_decides() {
        let check = |stack: &[&str], expected: CostPart| {
            assert_eq!(part(Some(ServerKind::Bind), stack), expected, "{stack:?}");
        };
        check(
            &["kernel rep_movs_alternative", "kernel _copy_to_iter", "kernel udp_recvmsg"],
            KernelNetwork,
        );
        check(&["kernel ep_poll", "kernel do_epoll_wait", "libc.so.6 epoll_wait"], KernelRest);
        check(&["kernel tcp_poll", "kernel ep_send_events"], KernelNetwork);
        check(&["kernel __memcpy", "kernel ext4_file_write_iter", "kernel vfs_write"], Log);
        check(&["kernel fdget_pos", "kernel ksys_write"], KernelRest);
        check(&["kernel eventfd_write", "kernel vfs_write"], KernelRest);
        check(&["kernel sock_write_iter", "kernel vfs_write"], KernelNetwork);
        check(&["kernel unix_dgram_sendmsg", "kernel __sys_sendto"], Log);
        check(&["kernel", "kernel"], Kernel);
        // A packet that comes while the server computes.
        check(
            &["kernel net_rx_action", "kernel handle_softirqs", "libdns-9.18.so f"],
            KernelNetwork,
        );
        check(&["kernel asm_sysvec_apic_timer_interrupt", "libdns-9.18.so f"], KernelRest);
    }

    /// A row behind one that takes all of its library would never be used.
    #[test]
    fn each_row_can_be_reached() {
        for table in known_by_name().chain([own(ServerKind::Embedded), EVERYWHERE]) {
            for (place, row) in table.iter().enumerate() {
                let hidden = table[..place].iter().find(|earlier| {
                    row.library.starts_with(earlier.library) && earlier.symbols.is_empty()
                });
                assert!(hidden.is_none(), "{row:?} is behind {hidden:?}");
            }
        }
    }

    #[test]
    fn the_tables() {
        let mut text = String::new();
        let mut tables: Vec<(&str, &[CostRow])> =
            ServerKind::ALL.iter().map(|kind| (kind.name(), own(*kind))).collect();
        tables.push(("all", EVERYWHERE));
        for (name, rows) in tables {
            for row in rows {
                let functions =
                    if row.symbols.is_empty() { "*".to_owned() } else { row.symbols.join(" ") };
                let library = if row.library.is_empty() { "*" } else { row.library };
                text.push_str(&format!("{name}: {library}: {functions} -> {}\n", row.part.name()));
            }
        }
        insta::assert_snapshot!("tables", text);
    }
}
