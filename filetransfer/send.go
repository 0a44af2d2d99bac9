package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"github.com/anser-rpc/anser"
)

func (v *Service) get(ctx context.Context, st *stream) error {
	var h getHead
	if err := recvJSON(st, &h); err != nil {
		return refuseEmpty(err)
	}
	if err := checkPath(h.Path); err != nil {
		return err
	}
	sums, err := parseChecksum(h.Checksum)
	if err != nil {
		return err
	}
	if err := v.admit(ctx, OpGet, h.Path); err != nil {
		return err
	}
	if err := v.sameStore(h.Store); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	defer v.running.Add(-1)
	f, info, err := v.openFile(h.Path)
	if err != nil {
		return explain(err, "get", h.Path)
	}
	defer f.Close()
	return v.send(ctx, st, &h, sums, f, info)
}

// send sends the file and its checksum.
func (v *Service) send(ctx context.Context, st *stream, h *getHead, sums Checksum, f *os.File, info fs.FileInfo) error {
	tag := tagOf(info)
	if h.Tag != "" && h.Tag != tag && (h.Store == v.store) {
		return changed(h.Path)
	}
	sum := sums.new()
	from, err := common(h, sum, f, info.Size())
	if err != nil {
		return explain(err, "read", h.Path)
	}
	if err := sendJSON(st, getState{Store: v.store, Size: info.Size(), From: from, Tag: tag}); err != nil {
		return err
	}
	err = sendBytes(ctx, st, f, from, info.Size(), sum, nil)
	if err == nil {
		var now fs.FileInfo
		if now, err = f.Stat(); err == nil && tagOf(now) != tag {
			err = changed(h.Path)
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = changed(h.Path) // it was truncated
	}
	if err != nil {
		return explain(err, "get", h.Path)
	}
	return sendJSON(st, ending{sumOf(sum)})
}

func changed(path string) error {
	return anser.Errorf(anser.FailedPrecondition, "%q was changed during the transfer: begin it again", path)
}

// tagOf differs between versions of a file.
func tagOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
}

// common returns how many bytes the client already has, and adds those to sum.
func common(h *getHead, sum hash.Hash, f *os.File, size int64) (int64, error) {
	if h.Have <= 0 || h.Have > size {
		return 0, nil
	}
	if err := hashPrefix(sum, f, h.Have); err != nil {
		return 0, err
	}
	if sumOf(sum) == h.Sum {
		return h.Have, nil
	}
	sum.Reset()
	return 0, nil
}

// openFile opens a regular file for reading: opening a pipe would wait for a writer.
func (v *Service) openFile(p string) (*os.File, fs.FileInfo, error) {
	info, err := v.root.Stat(p)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(p, info); err != nil {
		return nil, nil, err
	}
	f, err := v.root.OpenFile(p, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	// It may have been replaced since.
	if info, err = f.Stat(); err == nil {
		err = checkRegular(p, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func checkRegular(p string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return anser.Errorf(anser.FailedPrecondition, "%q is a folder: name a file in it", p)
	case !info.Mode().IsRegular():
		return anser.Errorf(anser.FailedPrecondition, "%q is not a file", p)
	}
	return nil
}

// sendBytes sends the bytes from one position to another, adds them to sum and reports the
// progress.
func sendBytes(ctx context.Context, st *stream, src io.ReaderAt, from, to int64, sum hash.Hash, told func(n int)) error {
	buf := takeBuffer()
	defer giveBuffer(buf)
	for from < to && ctx.Err() == nil {
		b := (*buf)[:min(block, to-from)]
		n, err := src.ReadAt(b, from)
		if n < len(b) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		sum.Write(b)
		from += int64(n)
		for len(b) > 0 {
			msg := b[:min(piece, len(b))]
			if err := st.Send(&msg); err != nil {
				return err
			}
			b = b[len(msg):]
			if told != nil {
				told(len(msg))
			}
		}
	}
	return ctx.Err()
}
