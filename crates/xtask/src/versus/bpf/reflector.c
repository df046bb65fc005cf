// An ideal DNS server, for IPv4 and UDP: every query comes back as an answer from inside the driver.
//
// It swaps the two ends of the Ethernet, IPv4 and UDP headers, sets the QR bit (RFC 1035, section
// 4.1.1), and sends the frame back where it came from. What a client costs is then hardly hidden by
// what its server costs. Everything runs in the softirq of the CPU that sent the query.
//
// With -DCOUNT_WINDOWS it also counts the queries of each millisecond, so that pacing is judged at
// the far end of the wire and not by the clock of who sends.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

// What libbpf's headers would bring; they are not needed for so little.
#define SEC(name) __attribute__((section(name), used))
#define INLINE inline __attribute__((always_inline))

// DNS, RFC 1035 section 4.2.1, in network order.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DNS_PORT 0x3500
#define LAST_OCTET(octet) ((__u64)(octet))
#else
#define DNS_PORT 0x0035
#define LAST_OCTET(octet) ((__u64)(octet) << 8)
#endif

// Keeps the compiler from turning a check of this pointer against the frame's end into one of a
// number, which the verifier does not follow.
#define KEEP(pointer) asm volatile("" : "+r"(pointer))

// Octets of a DNS header.
#define DNS_HEADER 12
// Longest UDP datagram that is answered, in words of 32 bits: the checksum is computed in a loop
// that the verifier must see the end of.
#define MOST_WORDS 160

#ifdef COUNT_WINDOWS
// Milliseconds that are kept; `windows.rs` has the same number. A power of two.
#define WINDOWS 65536

static __u64 (*const clock_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static void *(*const find)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;

// Queries by the millisecond of CLOCK_MONOTONIC in which they came, modulo WINDOWS.
struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    __u32 *key;
    __u64 *value;
    int (*max_entries)[WINDOWS];
} windows SEC(".maps");

static INLINE void count(void) {
    __u32 window = (clock_ns() / 1000000) & (WINDOWS - 1);
    __u64 *queries = find(&windows, &window);
    if (queries)
        __sync_fetch_and_add(queries, 1);
}
#else
static INLINE void count(void) {}
#endif

// Sets the checksum of a datagram of `length` octets (RFC 768). Zero, "none", would be shorter, but
// keeps the receiver's kernel from coalescing answers (GRO). Returns -1 if the frame is too short.
//
// It is computed as a whole: the sender leaves it to a device, so the frame holds only a part.
static INLINE int set_checksum(struct iphdr *ip, struct udphdr *udp, __u32 length, void *end) {
    __u64 sum = (__u64)ip->saddr + ip->daddr + udp->len;
    sum += __builtin_bswap16(IPPROTO_UDP);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    sum += IPPROTO_UDP - __builtin_bswap16(IPPROTO_UDP);
#endif
    __u32 words = length / 4;
    void *at = udp;
    udp->check = 0;
    for (__u32 word = 0; word < MOST_WORDS; word++) {
        if (word >= words)
            break;
        KEEP(at);
        if (at + 4 > end)
            return -1;
        sum += *(__u32 *)at;
        at += 4;
    }
    if (length & 2) {
        KEEP(at);
        if (at + 2 > end)
            return -1;
        sum += *(__u16 *)at;
        at += 2;
    }
    if (length & 1) {
        KEEP(at);
        if (at + 1 > end)
            return -1;
        sum += LAST_OCTET(*(__u8 *)at);
    }
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    __u16 check = ~sum;
    udp->check = check ? check : 0xffff;
    return 0;
}

SEC("xdp")
int reflect(struct xdp_md *frame) {
    void *end = (void *)(long)frame->data_end;
    struct ethhdr *ethernet = (void *)(long)frame->data;
    struct iphdr *ip = (void *)(ethernet + 1);
    struct udphdr *udp = (void *)(ip + 1);
    __u8 *dns = (void *)(udp + 1);
    if ((void *)(dns + DNS_HEADER) > end)
        return XDP_PASS;
    // Five words: no options, so that the UDP header is where it was looked for.
    if (ethernet->h_proto != __builtin_bswap16(ETH_P_IP) || ip->version != 4 || ip->ihl != 5)
        return XDP_PASS;
    if (ip->protocol != IPPROTO_UDP || udp->dest != DNS_PORT)
        return XDP_PASS;
    __u32 length = __builtin_bswap16(udp->len);
    if (length < sizeof(*udp) + DNS_HEADER || length / 4 >= MOST_WORDS)
        return XDP_PASS;

    for (int octet = 0; octet < ETH_ALEN; octet++) {
        __u8 source = ethernet->h_source[octet];
        ethernet->h_source[octet] = ethernet->h_dest[octet];
        ethernet->h_dest[octet] = source;
    }
    // The checksum of the IPv4 header does not mind the order of its words.
    __be32 address = ip->saddr;
    ip->saddr = ip->daddr;
    ip->daddr = address;
    __be16 port = udp->source;
    udp->source = udp->dest;
    udp->dest = port;
    dns[2] |= 0x80;
    if (set_checksum(ip, udp, length, end))
        return XDP_DROP;
    count();
    return XDP_TX;
}
