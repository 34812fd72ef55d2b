// Closed-loop load by HTTP/3: so many connections, each with so many requests under way. Prints the line of JSON that
// bench.clients.load reads.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

type headers []string

func (h *headers) String() string         { return strings.Join(*h, ", ") }
func (h *headers) Set(value string) error { *h = append(*h, value); return nil }

// The first failure is told.
var said sync.Once

// What one stream saw.
type seen struct {
	micros        []int
	bytes, wrong  int
	read, connect int
}

func main() {
	var extra headers
	address := flag.String("connect-to", "", "address and port that all connections go to")
	connections := flag.Int("connections", 32, "connections")
	streams := flag.Int("streams", 10, "requests under way on each")
	seconds := flag.Float64("seconds", 4, "how long is measured")
	flag.Var(&extra, "header", "name:value, as often as wanted")
	flag.Parse()
	url := flag.Arg(0)

	counting := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	results := make([]seen, *connections**streams)
	var ready, done sync.WaitGroup
	for c := range *connections {
		transport := newTransport(*address)
		for s := range *streams {
			ready.Add(1)
			done.Add(1)
			go func() {
				defer done.Done()
				ask(ctx, transport, url, extra, &ready, counting, &results[c**streams+s])
			}()
		}
	}
	ready.Wait()
	began := time.Now()
	close(counting)
	time.Sleep(time.Duration(*seconds * float64(time.Second)))
	took := time.Since(began)
	cancel()
	done.Wait()
	json.NewEncoder(os.Stdout).Encode(summary(results, took))
}

func newTransport(address string) *http3.Transport {
	return &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, _ string, config *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, address, config, quicConfig)
		},
	}
}

// Sends one request after the other; the first opens the connection and is not counted.
func ask(
	ctx context.Context, transport *http3.Transport, url string, extra headers,
	ready *sync.WaitGroup, counting chan struct{}, result *seen,
) {
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		status, size, err := once(ctx, transport, url, extra)
		if first {
			if err != nil || status != http.StatusOK {
				result.connect++
				if err != nil {
					said.Do(func() { os.Stderr.WriteString(err.Error() + "\n") })
				}
			}
			ready.Done()
			<-counting
			continue
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			result.read++
		default:
			if status >= 400 {
				result.wrong++
			}
			result.bytes += size
			result.micros = append(result.micros, int(time.Since(began).Microseconds()))
		}
	}
}

func once(ctx context.Context, transport *http3.Transport, url string, extra headers) (int, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, line := range extra {
		name, value, _ := strings.Cut(line, ":")
		request.Header.Set(name, strings.TrimSpace(value))
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	return response.StatusCode, int(size), err
}

func summary(results []seen, took time.Duration) map[string]any {
	var all seen
	for _, each := range results {
		all.micros = append(all.micros, each.micros...)
		all.bytes += each.bytes
		all.wrong += each.wrong
		all.read += each.read
		all.connect += each.connect
	}
	sort.Ints(all.micros)
	at := func(share float64) int {
		if len(all.micros) == 0 {
			return 0
		}
		return all.micros[int(share*float64(len(all.micros)-1))]
	}
	return map[string]any{
		"requests": len(all.micros), "duration_us": took.Microseconds(), "bytes": all.bytes,
		"p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99), "p999_us": at(0.999), "max_us": at(1),
		"connect": all.connect, "read": all.read, "write": 0, "status": all.wrong, "timeout": 0,
	}
}
