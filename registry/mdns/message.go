package mdns

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/anser-rpc/anser/registry"
)

const (
	maxPacket = 1400    // of several records
	maxRecord = 56000   // bytes of one record's JSON, which must fit into one datagram
	chunk     = 240     // bytes of JSON per string of a TXT record, which may have 255
	flush     = 1 << 15 // the cache-flush bit in the class of a record: it replaces all others of its type

	headerBytes = 12
)

var errTooLarge = errors.New("use less tags, or a registry with a server")

// labelOf returns the name under which an instance is announced: DNS labels are short, have no
// dots and do not distinguish case, so most of it is a hash of service and key.
func labelOf(in registry.Instance) string {
	sum := sha256.Sum256([]byte(in.Service + "\x00" + in.Key()))
	name := strings.ToLower(strings.ReplaceAll(in.Service, ".", "-"))
	return name[:min(len(name), 30)] + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// resources returns the records that announce an instance: its location for every DNS-SD client
// (PTR, SRV, A or AAAA), and the whole record for Anser (TXT).
func (r *Registry) resources(rec *record) ([]dnsmessage.Resource, error) {
	data, err := registry.Encode(rec.in)
	if err != nil {
		return nil, err
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("instance %q has a record of %d bytes, and mDNS has room for %d: %w", rec.in.Key(), len(data), maxRecord, errTooLarge)
	}
	txt := []string{"v=1", "o=" + rec.owner, "t=" + strconv.FormatInt(rec.at, 10)}
	for i := 0; len(data) > 0; i++ {
		n := min(chunk, len(data))
		txt = append(txt, "r"+strconv.Itoa(i)+"="+string(data[:n]))
		data = data[n:]
	}
	list, err := r.withTTL(rec.label, uint32(r.ttl/time.Second), txt)
	if err != nil {
		return nil, err
	}
	return append(list, r.location(rec)...), nil
}

// withTTL returns the PTR and TXT records of a label.
func (r *Registry) withTTL(label string, ttl uint32, txt []string) ([]dnsmessage.Resource, error) {
	kind, err := dnsmessage.NewName(r.kind)
	if err != nil {
		return nil, err
	}
	name, err := dnsmessage.NewName(label + "." + r.kind)
	if err != nil {
		return nil, err
	}
	shared := dnsmessage.ResourceHeader{Name: kind, Class: dnsmessage.ClassINET, TTL: ttl}
	unique := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET | flush, TTL: ttl}
	return []dnsmessage.Resource{
		{Header: shared, Body: &dnsmessage.PTRResource{PTR: name}},
		{Header: unique, Body: &dnsmessage.TXTResource{TXT: txt}},
	}, nil
}

// location returns the SRV record and the address record, if the instance has host and port.
func (r *Registry) location(rec *record) []dnsmessage.Resource {
	_, address, found := strings.Cut(rec.in.Address, "://")
	if !found {
		address = rec.in.Address
	}
	address, _, _ = strings.Cut(address, "/")
	host, port, err := net.SplitHostPort(address)
	n, e := strconv.ParseUint(port, 10, 16)
	if err != nil || e != nil {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	target := strings.TrimSuffix(host, ".") + "."
	if err == nil {
		target = rec.label + ".local."
	}
	if len(target) > 254 {
		return nil
	}
	header := func(name string) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{
			Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET | flush, TTL: uint32(r.ttl / time.Second),
		}
	}
	srv := &dnsmessage.SRVResource{Port: uint16(n), Target: dnsmessage.MustNewName(target)}
	list := []dnsmessage.Resource{{Header: header(rec.label + "." + r.kind), Body: srv}}
	switch {
	case err != nil:
	case ip.Is4():
		list = append(list, dnsmessage.Resource{Header: header(target), Body: &dnsmessage.AResource{A: ip.As4()}})
	default:
		list = append(list, dnsmessage.Resource{Header: header(target), Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
	}
	return list
}

// farewells returns the records that withdraw a record.
func (r *Registry) farewells(g goodbye) ([]dnsmessage.Resource, error) {
	return r.withTTL(g.label, 0, []string{"v=1", "o=" + g.owner, "t=" + strconv.FormatInt(g.at, 10)})
}

// question returns the query for all instances.
func (r *Registry) question() ([]byte, error) {
	kind, err := dnsmessage.NewName(r.kind)
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: kind, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	return m.Pack()
}

// response returns a message with the records.
func response(records []dnsmessage.Resource) ([]byte, error) {
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}, Answers: records}
	return m.Pack()
}

// heard is the content of a message.
type heard struct {
	asked    bool // queries for instances
	empty    bool // no content; see catchUp
	records  []record
	goodbyes []goodbye
}

// understand decodes a message. Records of other types, or in another format than Anser's, are
// ignored: the group is shared with other programs.
func (r *Registry) understand(message []byte) heard {
	var h heard
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.RCode != dnsmessage.RCodeSuccess {
		return h
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return h
	}
	if !head.Response {
		h.empty = len(questions) == 0 && len(message) == headerBytes
		for _, q := range questions {
			h.asked = h.asked || strings.EqualFold(q.Name.String(), r.kind) && (q.Type == dnsmessage.TypePTR || q.Type == dnsmessage.TypeALL)
		}
		return h
	}
	answers, err := p.AllAnswers()
	if err != nil || p.SkipAllAuthorities() != nil {
		return h
	}
	additionals, err := p.AllAdditionals()
	if err != nil {
		return h
	}
	for _, a := range append(answers, additionals...) {
		txt, ok := a.Body.(*dnsmessage.TXTResource)
		label, mine := strings.CutSuffix(strings.ToLower(a.Header.Name.String()), "."+strings.ToLower(r.kind))
		if ok && mine && a.Header.Class&^flush == dnsmessage.ClassINET {
			h.add(label, a.Header.TTL, txt.TXT)
		}
	}
	return h
}

// add decodes one TXT record.
func (h *heard) add(label string, ttl uint32, txt []string) {
	var data strings.Builder
	rec := record{label: label}
	parts := 0
	for _, s := range txt {
		key, value, _ := strings.Cut(s, "=")
		switch key {
		case "o":
			rec.owner = value
		case "t":
			rec.at, _ = strconv.ParseInt(value, 10, 64)
		case "r" + strconv.Itoa(parts):
			data.WriteString(value)
			parts++
		}
	}
	if rec.owner == "" || rec.at <= 0 {
		return
	}
	if ttl == 0 {
		h.goodbyes = append(h.goodbyes, goodbye{label: label, owner: rec.owner, at: rec.at})
		return
	}
	in, err := registry.Decode([]byte(data.String()))
	if err != nil || labelOf(in) != label {
		return
	}
	rec.in = in
	rec.expires = time.Now().Add(time.Duration(min(ttl, maxTTL)) * time.Second)
	h.records = append(h.records, rec)
}

// maxTTL bounds the TTL of foreign records, in seconds.
const maxTTL = 3600
