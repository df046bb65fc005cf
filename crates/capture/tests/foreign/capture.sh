# Runs in a network namespace of its own, in an empty folder: BIND answers queries of dig on the loopback, programs of
# others capture them, and BIND writes dnstap. The MTU makes large queries into fragments.
set -eu
# All on one CPU: on a busy machine packets that two CPUs send to the loopback are captured in another order than that
# of their connection.
taskset -pc "$(grep Cpus_allowed_list /proc/self/status | grep -o '[0-9]\+' | head -1)" $$ > /dev/null
ip link set lo up mtu 1280
named -g -c named.conf -n 1 2> named.log &
named=$!
until dig @127.0.0.1 +tries=1 +time=1 ready.example SOA > /dev/null; do
    kill -0 $named
    sleep 0.1
done
captures=
# The file, what is said when the capture has begun, and the command.
capture() {
    local file=$1 begun=$2
    shift 2
    : > "$file.log"
    "$@" -w "$file" 2> "$file.log" &
    captures="$captures $!"
    until grep -q "$begun" "$file.log"; do
        kill -0 $!
        sleep 0.05
    done
}
# What is captured is written at once. The buffer has room for all of it: otherwise the kernel drops packets.
now='-U --immediate-mode -B 32768'
capture lo.pcap 'listening on' tcpdump -i lo $now
capture snapped.pcap 'listening on' tcpdump -i lo $now -s 70
capture cooked.pcap 'listening on' tcpdump -i any -y LINUX_SLL $now
capture cooked2.pcap 'listening on' tcpdump -i any -y LINUX_SLL2 $now --time-stamp-precision=nano
capture two.pcapng 'File:' dumpcap -i lo -i any
large=$(printf 'ab%.0s' $(seq 3000))
for number in $(seq 20); do echo "name-$number.example TXT"; done > names
dig @127.0.0.1 -f names > dig.log
dig @::1 +noedns -f names >> dig.log
dig @127.0.0.1 +tcp +keepopen -f names >> dig.log
dig @::1 +tcp -f names >> dig.log
# dig would take TCP for these.
cat fragments-4 > /dev/udp/127.0.0.1/53
cat fragments-6 > /dev/udp/::1/53
dig @127.0.0.1 +tcp +ednsopt=65001:$large segments.example TXT >> dig.log
dig @127.0.0.1 +opcode=NOTIFY notify.example SOA >> dig.log
dig @127.0.0.1 last.example TXT >> dig.log
for file in lo.pcap cooked.pcap cooked2.pcap two.pcapng; do
    until tshark -r $file -Y 'dns.qry.name == "last.example" && dns.flags.response == 1' 2> tshark.err | grep -q last; do
        sleep 0.1
    done
done
kill -INT $captures
wait $captures || true
! grep -h 'dropped by kernel' ./*.log | grep -v '^0 '
kill $named
wait $named || true
