package admin

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/anser-rpc/anser"
)

// What a stream waits for.
const (
	waitsForCredit  = "the peer to receive"
	waitsForConn    = "its turn to send"
	waitsForMessage = "a message of the peer"
)

func streamsOf(list []anser.StreamStatus) (out []Stream) {
	for i := range list {
		s := &list[i]
		v := Stream{
			Method: s.Method, Kind: kindOf(s), Peer: cmp.Or(s.Address, text(s.Addr)), Local: text(s.Local), Protocol: s.Protocol, Age: s.Age,
			Sent: s.Sent, Received: s.Received, SendCredit: s.SendCredit, ReceiveCredit: s.ReceiveCredit,
		}
		if s.Identity != nil {
			v.Identity = s.Identity.Subject
		}
		switch {
		case s.WaitsForCredit:
			v.Waits = append(v.Waits, waitsForCredit)
		case s.WaitsForConn:
			v.Waits = append(v.Waits, waitsForConn)
		}
		if s.WaitsForMessage {
			v.Waits = append(v.Waits, waitsForMessage)
		}
		out = append(out, v)
	}
	return out
}

// kindOf returns the name of the kind of a stream, or "" if a client does not know it.
func kindOf(s *anser.StreamStatus) string {
	switch {
	case s.ClientStream && s.ServerStream:
		return "both"
	case s.ClientStream:
		return "client"
	case s.ServerStream:
		return "server"
	}
	return ""
}

func streamsPage(d *Document, _ url.Values) []section {
	return eachSide(d, "Streams",
		func(title string, s *Server) section { return streamsSection(title, s.OpenStreams, int(s.Streams)) },
		func(title string, c *Client) section { return streamsSection(title, c.OpenStreams, c.Streams) })
}

func streamsSection(title string, streams []Stream, all int) section {
	s := section{
		Title: title, Empty: "No open streams.",
		Columns: columns("Method", "Kind", "Peer", "Protocol", "Identity", ">Age", ">Sent", ">Received", ">May send", ">Peer may send", "Waits for"),
	}
	if len(streams) < all {
		s.Note = fmt.Sprintf("%d of %d, the oldest first; ?streams=N shows more.", len(streams), all)
	}
	for i := range streams {
		v := &streams[i]
		credit := func(n int64) cell {
			if v.Protocol != "anser" {
				return dim("–")
			}
			return plain(size(float64(max(n, 0))))
		}
		waits := dim("nothing")
		if len(v.Waits) > 0 {
			waits = plain(strings.Join(v.Waits, ", "))
		}
		kind := plain(v.Kind)
		if v.Kind == "" {
			kind = cell{Text: "not known", Class: "dim", Hint: "the client opened it by its name, without anser.StreamSides: the server knows the kind"}
		}
		s.Rows = append(s.Rows, []cell{
			{Text: v.Method, Key: fmt.Sprint(v.Method, " ", v.Local, " ", v.Peer, " ", i)},
			kind, plain(v.Peer), plain(v.Protocol), plain(v.Identity), plain(span(v.Age)),
			number(v.Sent, ""), number(v.Received, ""), credit(v.SendCredit), credit(v.ReceiveCredit), waits,
		})
	}
	return s
}
