package auth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// signature returns a credential of the key with a nonce derived from n.
func signature(t testing.TB, key auth.Key, at time.Time, n uint64) []byte {
	t.Helper()
	secret, err := hex.DecodeString(key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	signed := binary.LittleEndian.AppendUint64(nil, uint64(at.Unix()))
	signed = append(binary.LittleEndian.AppendUint64(signed, n), make([]byte, 8)...)
	signed = append(signed, key.ID...)
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("anser signed credential 1\n"))
	h.Write(signed)
	return append(h.Sum(nil), signed...)
}

// login presents a credential to the authenticator.
func login(s *auth.Signed, data []byte) error {
	_, err := s.Authenticate(context.Background(), &anser.AuthRequest{Scheme: auth.SchemeSigned, Data: data})
	return err
}

// A key that is used excessively fills its own share, but not that of another key.
func TestOneKeyDoesNotLockOutOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := auth.Key{ID: "busy", Secret: auth.NewSecret(), Subject: "busy"}
		quiet := auth.Key{ID: "quiet", Secret: auth.NewSecret(), Subject: "quiet"}
		s, err := auth.NewSigned(busy, quiet)
		if err != nil {
			t.Fatal(err)
		}
		first := signature(t, busy, time.Now(), 0)
		for n := range uint64(auth.MaxLoginsPerKey) {
			if err := login(s, signature(t, busy, time.Now(), n)); err != nil {
				t.Fatal(n, err)
			}
		}
		for n := range uint64(10) {
			if login(s, signature(t, busy, time.Now(), auth.MaxLoginsPerKey+n)) == nil {
				t.Error("the key has more room than it should")
			}
			if err := login(s, signature(t, quiet, time.Now(), n)); err != nil {
				t.Errorf("the other key is locked out: %v", err)
			}
		}
		if login(s, first) == nil {
			t.Error("a signature is taken twice")
		}
		if err := s.Set(busy, quiet); err != nil { // no login is forgotten
			t.Fatal(err)
		}
		if login(s, first) == nil {
			t.Error("a signature is taken twice, after the keys were set")
		}
		login(s, append([]byte{1}, first[1:]...))
		login(s, signature(t, busy, time.Now().Add(-2*auth.ClockWindow), 0))
		want := auth.KeyStats{Accepted: auth.MaxLoginsPerKey, Replayed: 2, NoRoom: 10, Remembered: auth.MaxLoginsPerKey}
		st := s.Stats()
		if got := st.Keys["busy"]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if st.Keys["quiet"].Accepted != 10 || st.NotValid != 1 || st.WrongClock != 1 {
			t.Errorf("%+v", st)
		}
		time.Sleep(5 * auth.ClockWindow)
		if err := login(s, signature(t, busy, time.Now(), 0)); err != nil {
			t.Errorf("the room is not free again: %v", err)
		}
	})
}

// A signature is remembered for as long as it is valid, however much time passes in between.
func TestSignaturesAreRememberedLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := auth.Key{ID: "k", Secret: auth.NewSecret(), Subject: "k"}
		s, err := auth.NewSigned(key)
		if err != nil {
			t.Fatal(err)
		}
		for n := range uint64(100) {
			early := signature(t, key, time.Now().Add(auth.ClockWindow), n) // valid for two windows
			if err := login(s, early); err != nil {
				t.Fatal(n, err)
			}
			time.Sleep(time.Duration(n) * 2 * auth.ClockWindow / 100)
			login(s, signature(t, key, time.Now(), 1000+n))
			if login(s, early) == nil {
				t.Fatalf("a signature is taken twice, the second time after %d%% of its life", n)
			}
		}
		if err := s.Set(); err != nil {
			t.Fatal(err)
		}
		other := auth.Key{ID: "other", Secret: auth.NewSecret(), Subject: "o"}
		if err := s.Set(other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * auth.ClockWindow)
		if err := login(s, signature(t, other, time.Now(), 0)); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); len(st.Keys) != 1 {
			t.Errorf("a key that was taken back is still known: %s", fmt.Sprint(st.Keys))
		}
	})
}
