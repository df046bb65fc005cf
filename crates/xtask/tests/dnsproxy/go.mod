module dnslab/tests/dnsproxy

go 1.25.5

require github.com/AdguardTeam/dnsproxy v0.78.2
