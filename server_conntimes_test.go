package anser_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

func TestConnTimes(t *testing.T) {
	for want, s := range map[anser.ConnTimes]*anser.Server{
		{KeepaliveIdle: 30 * time.Second, KeepaliveAnswer: 10 * time.Second, MinPing: 5 * time.Second, WriteStall: 10 * time.Second}: anser.NewServer(),
		{KeepaliveIdle: 1, KeepaliveAnswer: 2, MinPing: 3, WriteStall: 4, ReadTimeout: 5}:                                            anser.NewServer(anser.Keepalive(1, 2), anser.MinPing(3), anser.WriteStall(4), anser.ReadTimeout(5)),
		{}: new(anser.Server),
	} {
		if got := s.ConnTimes(); got != want {
			t.Errorf("the times are %+v, want %+v", got, want)
		}
	}
}
