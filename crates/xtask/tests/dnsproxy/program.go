//go:build tools

// Package dnsproxy names AdGuard's dnsproxy, which is built from here for the matrix of servers by transports: a
// forwarder whose DoQ, HTTP/2 and HTTP/3 are others' than CoreDNS's. Its version stands in go.mod.
package dnsproxy

import _ "github.com/AdguardTeam/dnsproxy"
