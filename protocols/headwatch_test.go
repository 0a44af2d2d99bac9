package protocols_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// exchangeRaw sends bytes on a connection of its own, and returns the statuses of the answers until
// the server closes it, or until want of them have arrived.
func exchangeRaw(t *testing.T, address, send string, want int) (statuses []int, closed bool) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(nc, send); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(nc)
	for len(statuses) < want {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, true
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
		closed = resp.Close
	}
	return statuses, closed
}

// Requests whose end a proxy in front could see elsewhere are refused, and so are those with two of
// what must be one.
func TestAmbiguousRequests(t *testing.T) {
	_, address := serve(t)
	const start = "POST /Arith.Mul HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	good := start + "Content-Length: 13\r\n\r\n{\"A\":7,\"B\":8}"
	chunks := "Transfer-Encoding: chunked\r\n\r\nd\r\n{\"A\":7,\"B\":8}\r\n0\r\n\r\n"
	for name, row := range map[string]struct {
		send   string
		want   []int
		closed bool
	}{
		"good":                     {send: good, want: []int{200}},
		"good, twice":              {send: good + good, want: []int{200, 200}},
		"chunks":                   {send: start + chunks, want: []int{200}},
		"length, then chunks":      {send: start + "Content-Length: 4\r\n" + chunks, want: []int{400}, closed: true},
		"chunks, then length":      {send: start + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nd\r\n{\"A\":7,\"B\":8}\r\n0\r\n\r\n", want: []int{400}, closed: true},
		"two lengths":              {send: start + "Content-Length: 13\r\nContent-Length: 4\r\n\r\n{\"A\":7,\"B\":8}", want: []int{400}, closed: true},
		"the same length twice":    {send: start + "content-LENGTH: 13\r\nContent-Length: 13\r\n\r\n{\"A\":7,\"B\":8}", want: []int{400}, closed: true},
		"a list of lengths":        {send: start + "Content-Length: 13, 13\r\n\r\n{\"A\":7,\"B\":8}", want: []int{400}, closed: true},
		"a negative length":        {send: start + "Content-Length: -1\r\n\r\n", want: []int{400}, closed: true},
		"other encodings":          {send: start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", want: []int{501}, closed: true},
		"two encodings":            {send: start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", want: []int{501}, closed: true},
		"a line without CR":        {send: strings.Replace(good, "x\r\n", "x\n", 1), want: []int{400}, closed: true},
		"a folded line":            {send: strings.Replace(good, "Host: x\r\n", "Host: x\r\nX: a\r\n b\r\n", 1), want: []int{400}, closed: true},
		"a folded encoding":        {send: start + "Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n\r\nd\r\n{\"A\":7,\"B\":8}\r\n0\r\n\r\n", want: []int{400}, closed: true},
		"a space before the colon": {send: start + "Content-Length : 13\r\n\r\n{\"A\":7,\"B\":8}", want: []int{400}, closed: true},
		"no host":                  {send: strings.Replace(good, "Host: x\r\n", "", 1), want: []int{400}, closed: true},
		"two hosts":                {send: strings.Replace(good, "Host: x\r\n", "Host: x\r\nHost: y\r\n", 1), want: []int{400}, closed: true},
		"two tokens":               {send: strings.Replace(good, "Host: x\r\n", "Host: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n", 1), want: []int{400}, closed: true},
		"two types":                {send: strings.Replace(good, "Host: x\r\n", "Host: x\r\nContent-Type: text/plain\r\n", 1), want: []int{400}, closed: true},
		// The answer to the second one ends the connection, so that the third is not seen.
		"smuggled behind others": {send: good + start + "Content-Length: 4\r\n" + chunks + good, want: []int{200, 200}, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, closed := exchangeRaw(t, address, row.send, len(row.want))
			if len(got) != len(row.want) || closed != row.closed {
				t.Fatalf("statuses %v, closed: %v; want %v, %v", got, closed, row.want, row.closed)
			}
			for i := range got {
				if got[i] != row.want[i] {
					t.Errorf("statuses %v, want %v", got, row.want)
				}
			}
		})
	}
}
