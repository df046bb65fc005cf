// A client of DNS over QUIC (RFC 9250) and DNS over HTTPS with HTTP/3 (RFC 8484, RFC 9114) on
// quic-go, which knows nothing of this project: no client of Debian 12 speaks either.
//
//	quic-go-client doq|get|post|alpn=NAME ADDRESS AUTHORITY COUNT
//
// It asks COUNT times over one connection for www.example/A, all at once, and then once more over a
// second connection that it resumes with early data. It prints the sum of right answers, and
// whether the second connection was resumed and its early data accepted. With alpn=NAME it asks for that
// protocol in the handshake, for none if there is no name.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// www.example, type A, class IN; the id is 0, as both RFCs have it.
var query = []byte("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x00\x00\x01\x00\x01")

// check says what is wrong with an answer: id, QR and AA, response code, one record, its address.
func check(answer []byte) error {
	if len(answer) < 12 || answer[0] != 0 || answer[1] != 0 || answer[2]&0x84 != 0x84 ||
		answer[3]&0x0f != 0 || binary.BigEndian.Uint16(answer[6:]) != 1 ||
		!bytes.Contains(answer, []byte{192, 0, 2, 1}) {
		return fmt.Errorf("not the right answer: %x", answer)
	}
	return nil
}

// askDoq asks on a stream of its own.
func askDoq(ctx context.Context, connection *quic.Conn) error {
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	if _, err = stream.Write(framed); err != nil {
		return err
	}
	if err = stream.Close(); err != nil {
		return err
	}
	answer, err := io.ReadAll(stream)
	if err != nil {
		return err
	}
	if len(answer) < 2 || int(binary.BigEndian.Uint16(answer)) != len(answer)-2 {
		return fmt.Errorf("not the stated length: %x", answer)
	}
	return check(answer[2:])
}

// askHttp asks with a request of its own.
func askHttp(ctx context.Context, client *http3.ClientConn, method string) error {
	address := "https://localhost/dns-query"
	var body io.Reader
	if method == http.MethodGet {
		address += "?dns=" + base64.RawURLEncoding.EncodeToString(query)
	} else {
		body = bytes.NewReader(query)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/dns-message")
	if body != nil {
		request.Header.Set("Content-Type", "application/dns-message")
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	kind := response.Header.Get("Content-Type")
	if response.StatusCode != 200 || kind != "application/dns-message" {
		return fmt.Errorf("status %d, content type %q", response.StatusCode, kind)
	}
	return check(answer)
}

// ask opens a connection and asks so often over it.
func ask(protocol, address string, settings *tls.Config, count int) (quic.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	connection, err := quic.DialAddrEarly(ctx, address, settings, &quic.Config{})
	if err != nil {
		return quic.ConnectionState{}, err
	}
	one := func() error { return askDoq(ctx, connection) }
	switch protocol {
	case "get", "post":
		client := (&http3.Transport{}).NewClientConn(connection)
		method := map[string]string{"get": http.MethodGet, "post": http.MethodPost}[protocol]
		one = func() error { return askHttp(ctx, client, method) }
	}
	failures := make(chan error, count)
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			if err := one(); err != nil {
				failures <- err
			}
		})
	}
	all.Wait()
	select {
	case err = <-failures:
		return quic.ConnectionState{}, err
	case <-connection.HandshakeComplete():
	}
	// Tickets come after the handshake.
	time.Sleep(200 * time.Millisecond)
	state := connection.ConnectionState()
	return state, connection.CloseWithError(0, "")
}

func run() error {
	protocol, address, authority := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	settings := &tls.Config{
		RootCAs:            roots,
		ServerName:         "localhost",
		NextProtos:         []string{"h3"},
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	if protocol == "doq" {
		settings.NextProtos = []string{"doq"}
	}
	if name, ok := strings.CutPrefix(protocol, "alpn="); ok {
		settings.NextProtos = nil
		if name != "" {
			settings.NextProtos = []string{name}
		}
	}
	if _, err = ask(protocol, address, settings, count); err != nil {
		return err
	}
	state, err := ask(protocol, address, settings, 1)
	if err != nil {
		return err
	}
	fmt.Printf("%d answers, resumed %v, early data %v\n", count+1, state.TLS.DidResume, state.Used0RTT)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
