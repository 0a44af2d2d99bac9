package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/anser-rpc/anser/filetransfer"
)

// stream talks with a server, and ends that in one of several ways.
func (k *caller) stream() {
	may := expected{once: true} // a stream is never opened again, and an open one ends with its server
	ctx, cancel := k.patience(&may)
	defer cancel()
	opts := k.options(&may, false)
	may.once = true
	st, err := talk.Open(ctx, k.client, opts...)
	if err != nil {
		k.tally.judge(stream, err, may)
		return
	}
	defer st.Close()
	all := make([]*Parcel, 1+k.r.IntN(40))
	id := newID()
	for i := range all {
		all[i] = &Parcel{ID: id, Seq: i, Data: fill(id, asked, size(k.r)/8), Do: Wish{Want: size(k.r) / 8}}
	}
	early := len(all) + 1 // after how many answers the stream is closed
	switch k.r.IntN(6) {
	case 0:
		early = k.r.IntN(len(all))
	case 1:
		all[len(all)-1].Do.Fail = true
		may.refuse = all[len(all)-1].refusal()
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		for _, p := range all {
			if st.Send(p) != nil {
				return // Recv returns the reason
			}
		}
		st.CloseSend()
	})
	defer sending.Wait()
	for n := 0; ; n++ {
		if n == early {
			st.Close()
			k.tally.done[stream].Add(1)
			return
		}
		out, err := st.Recv()
		switch {
		case err == io.EOF && n == len(all) && may.refuse == "":
			k.tally.done[stream].Add(1)
			return
		case err == io.EOF:
			k.tally.fail("stream", fmt.Errorf("%s ended well after %d of %d messages", id, n, len(all)))
			return
		case err != nil:
			st.Close() // the sender may still wait
			k.tally.judge(stream, err, may)
			return
		case n >= len(all):
			k.tally.fail("stream", fmt.Errorf("%s has more answers than messages", id))
			return
		}
		if err := out.answers(all[n]); err != nil {
			k.tally.fail("stream", err)
			return
		}
	}
}

// file sends a file, fetches it and removes it.
func (k *caller) file() {
	id := newID()
	content := fill(id, asked, k.r.IntN(2<<20))
	may := expected{once: true}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if k.r.IntN(5) == 0 {
		may.gaveUp = true
		defer time.AfterFunc(time.Duration(k.r.IntN(30_000))*time.Microsecond, cancel).Stop()
	}
	if _, err := filetransfer.PutFrom(ctx, k.client, bytes.NewReader(content), int64(len(content)), id); err != nil {
		k.judgeFile(err, may)
		return
	}
	var got bytes.Buffer
	_, err := filetransfer.GetTo(ctx, k.client, id, &got)
	if err == nil {
		if err := compare(got.Bytes(), content); err != nil {
			k.tally.fail("file", fmt.Errorf("%s: %w", id, err))
			return
		}
		err = filetransfer.Remove(context.Background(), k.client, id)
	}
	if err != nil {
		k.judgeFile(err, may)
		return
	}
	k.tally.done[files].Add(1)
}

// judgeFile classifies errors of file transfers: a failure before a server has answered once is an
// immediate error.
func (k *caller) judgeFile(err error, may expected) {
	if may.gaveUp && errors.Is(err, context.Canceled) {
		k.tally.cancelled.Add(1)
		return
	}
	k.tally.judge(files, err, may)
}
