package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// The steps of a bare copy: a head, the bytes, the checksum, and one byte for success.

// head opens a bare copy.
type head struct {
	Way, Sum string
	Size     int64
}

const block = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// hasher returns nil for "none".
func hasher(sum string) hash.Hash {
	switch sum {
	case "sha256":
		return sha256.New()
	case "crc32c":
		return crc32.New(castagnoli)
	}
	return nil
}

// bareCopy copies a file over a new connection.
func bareCopy(addr, way, sum, near string, size int64) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := json.Marshal(head{way, sum, size})
	if err != nil {
		return err
	}
	if _, err := nc.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		return err
	}
	if way == "put" {
		return give(nc, filepath.Join(near, "source"), sum, size)
	}
	return take(nc, filepath.Join(near, "fetched"), sum, size)
}

// serveBare answers bare copies.
func serveBare(l net.Listener, dir string) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if err := answer(nc, dir); err != nil {
			fmt.Fprintln(os.Stderr, "bare copy:", err)
		}
		nc.Close()
	}
}

func answer(nc net.Conn, dir string) error {
	var n [4]byte
	if _, err := io.ReadFull(nc, n[:]); err != nil {
		return err
	}
	b := make([]byte, binary.LittleEndian.Uint32(n[:]))
	if _, err := io.ReadFull(nc, b); err != nil {
		return err
	}
	var h head
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	if h.Way == "put" {
		return take(nc, filepath.Join(dir, "bare"), h.Sum, h.Size)
	}
	return give(nc, filepath.Join(dir, "bare"), h.Sum, h.Size)
}

// give sends a file. Without a checksum the kernel may do it alone.
func give(nc net.Conn, name, sum string, size int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := hasher(sum)
	if h == nil {
		_, err = io.CopyN(nc, f, size)
	} else {
		_, err = io.CopyBuffer(struct{ io.Writer }{nc}, struct{ io.Reader }{io.TeeReader(io.LimitReader(f, size), h)}, make([]byte, block))
		if err == nil {
			_, err = nc.Write(h.Sum(nil))
		}
	}
	if err != nil {
		return err
	}
	_, err = io.ReadFull(nc, make([]byte, 1))
	return err
}

// take receives a file.
func take(nc net.Conn, name, sum string, size int64) error {
	f, err := os.CreateTemp(filepath.Dir(name), "part-")
	if err != nil {
		return err
	}
	defer f.Close()
	h := hasher(sum)
	if h == nil {
		_, err = io.CopyN(f, nc, size)
	} else {
		err = takeSummed(nc, f, h, size)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), os.Rename(f.Name(), name)); err != nil {
		return err
	}
	_, err = nc.Write([]byte{1})
	return err
}

func takeSummed(nc net.Conn, f *os.File, h hash.Hash, size int64) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{io.TeeReader(io.LimitReader(nc, size), h)}, make([]byte, block))
	if err != nil {
		return err
	}
	want := make([]byte, h.Size())
	if _, err := io.ReadFull(nc, want); err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), want) {
		return errors.New("the checksums differ")
	}
	return nil
}

// fillFile writes bytes that no file system can make smaller.
func fillFile(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
	return errors.Join(err, f.Close())
}
