package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// client sends DNS queries. It keeps no connections open.
type client struct {
	servers  []string // if empty, those of the config
	config   string   // path of resolv.conf
	timeout  time.Duration
	no4, no6 bool
}

// reply is a server's answer about a name: its records, or that it has none.
type reply struct {
	answers, additionals []dnsmessage.Resource
	ttl                  time.Duration // of the answers, or of the negative answer
}

const (
	rounds   = 2    // how often each server is tried
	udpBytes = 1232 // a datagram of this size is not fragmented on the way
	maxBytes = 64 << 10
)

// ask tries the servers in turn until one answers that the name has records, or that it has none.
func (c *client) ask(ctx context.Context, servers []string, name string, kind dnsmessage.Type) (reply, error) {
	full, err := dnsmessage.NewName(name)
	if err != nil {
		return reply{}, fmt.Errorf("DNS name %q: %w", name, err)
	}
	q := dnsmessage.Question{Name: full, Type: kind, Class: dnsmessage.ClassINET}
	var last error
	for range rounds {
		for _, server := range servers {
			r, err := c.exchange(ctx, server, q)
			if err == nil {
				return r, nil
			}
			if ctx.Err() != nil {
				return reply{}, ctx.Err()
			}
			last = fmt.Errorf("DNS server %s, asked for %v of %s: %w", server, strings.TrimPrefix(kind.String(), "Type"), name, err)
		}
	}
	return reply{}, last
}

// exchange asks one server, and uses TCP if the answer is too long for UDP.
func (c *client) exchange(ctx context.Context, server string, q dnsmessage.Question) (reply, error) {
	header, message, err := c.over(ctx, "udp", server, q, true)
	if err == nil && (header.RCode == dnsmessage.RCodeFormatError || header.RCode == dnsmessage.RCodeNotImplemented) {
		header, message, err = c.over(ctx, "udp", server, q, false) // it may not support EDNS
	}
	if err == nil && header.Truncated {
		header, message, err = c.over(ctx, "tcp", server, q, true)
	}
	if err != nil {
		return reply{}, err
	}
	return read(header, message)
}

// over sends the question and returns the answer to it.
func (c *client) over(ctx context.Context, network, server string, q dnsmessage.Question, edns bool) (dnsmessage.Header, []byte, error) {
	fail := func(err error) (dnsmessage.Header, []byte, error) { return dnsmessage.Header{}, nil, err }
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	var id [2]byte
	rand.Read(id[:]) // it never fails
	number := binary.BigEndian.Uint16(id[:])
	message, err := question(number, q, edns)
	if err != nil {
		return fail(err)
	}
	buf := make([]byte, maxBytes)
	read := conn.Read
	if network == "tcp" {
		message = append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
		read = func(b []byte) (int, error) { return readFramed(conn, b) }
	}
	if _, err := conn.Write(message); err != nil {
		return fail(late(ctx, err))
	}
	for {
		n, err := read(buf)
		if err != nil {
			return fail(late(ctx, err))
		}
		// A message that does not answer this question may be a spoofing attempt.
		if header, ok := answers(buf[:n], number, q); ok {
			return header, buf[:n], nil
		}
	}
}

// late replaces an I/O error by the timeout that caused it.
func late(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		return fmt.Errorf("no answer: %w", e)
	}
	return err
}

func readFramed(conn net.Conn, b []byte) (int, error) {
	if _, err := io.ReadFull(conn, b[:2]); err != nil {
		return 0, err
	}
	return io.ReadFull(conn, b[:binary.BigEndian.Uint16(b)])
}

func question(id uint16, q dnsmessage.Question, edns bool) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{q},
	}
	if edns {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(udpBytes, dnsmessage.RCodeSuccess, false); err != nil {
			return nil, err
		}
		m.Additionals = []dnsmessage.Resource{{Header: h, Body: new(dnsmessage.OPTResource)}}
	}
	return m.Pack()
}

// answers reports whether a message is the answer to the question.
func answers(message []byte, id uint16, q dnsmessage.Question) (dnsmessage.Header, bool) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.ID != id || !h.Response {
		return h, false
	}
	asked, err := p.Question()
	if err != nil {
		// A server that cannot parse a question may leave it out.
		return h, h.RCode == dnsmessage.RCodeFormatError || h.RCode == dnsmessage.RCodeNotImplemented
	}
	return h, asked.Type == q.Type && asked.Class == q.Class && strings.EqualFold(asked.Name.String(), q.Name.String())
}

// read parses an answer.
func read(h dnsmessage.Header, message []byte) (reply, error) {
	var r reply
	if h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError {
		return r, errors.New(rcode(h.RCode))
	}
	if h.Truncated {
		return r, errors.New("the answer is truncated, even over TCP")
	}
	var p dnsmessage.Parser
	if _, err := p.Start(message); err != nil {
		return r, err
	}
	if err := p.SkipAllQuestions(); err != nil {
		return r, err
	}
	var authorities []dnsmessage.Resource
	var err error
	if r.answers, err = p.AllAnswers(); err == nil {
		if authorities, err = p.AllAuthorities(); err == nil {
			r.additionals, err = p.AllAdditionals()
		}
	}
	if err != nil {
		return r, fmt.Errorf("the answer cannot be read: %w", err)
	}
	r.ttl = ttl(r.answers)
	if len(r.answers) == 0 {
		r.ttl = negativeTTL(authorities)
	}
	return r, nil
}

func rcode(c dnsmessage.RCode) string {
	switch c {
	case dnsmessage.RCodeServerFailure:
		return "SERVFAIL: it could not resolve the name; use another server, or check its log"
	case dnsmessage.RCodeRefused:
		return "REFUSED: it does not answer this client, or not for this zone"
	case dnsmessage.RCodeFormatError:
		return "FORMERR: it does not understand the question"
	case dnsmessage.RCodeNotImplemented:
		return "NOTIMP: it does not answer such questions"
	}
	return fmt.Sprintf("error %d", c)
}

// ttl returns the lowest TTL of the records.
func ttl(records []dnsmessage.Resource) time.Duration {
	least := uint32(1<<31 - 1)
	for _, r := range records {
		least = min(least, r.Header.TTL)
	}
	return time.Duration(least) * time.Second
}

// negativeTTL returns how long a negative answer may be cached (RFC 2308), or 0 if it does not
// say.
func negativeTTL(authorities []dnsmessage.Resource) time.Duration {
	for _, r := range authorities {
		if soa, ok := r.Body.(*dnsmessage.SOAResource); ok {
			return time.Duration(min(r.Header.TTL, soa.MinTTL)) * time.Second
		}
	}
	return 0
}
