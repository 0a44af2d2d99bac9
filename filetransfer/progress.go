package filetransfer

import "time"

const progressEvery = 100 * time.Millisecond

// meter reports a transfer's progress.
type meter struct {
	tell  func(Progress)
	total int64
	done  int64
	rate  float64
	last  time.Time // time of the last report
	at    int64     // done at that time
}

// start is called when the following bytes begin at done.
func (m *meter) start(done, total int64) {
	m.done, m.total, m.at, m.last = done, total, done, time.Now()
}

// add counts n further bytes.
func (m *meter) add(n int) {
	m.done += int64(n)
	if m.tell == nil {
		return
	}
	if since := time.Since(m.last); since >= progressEvery {
		m.update(since)
		m.tell(Progress{m.done, m.total, m.rate})
	}
}

// update moves the rate towards that of the time since the last report.
func (m *meter) update(since time.Duration) {
	now := float64(m.done-m.at) / since.Seconds()
	if m.rate == 0 {
		m.rate = now
	}
	m.rate += (now - m.rate) * 0.3
	m.at, m.last = m.done, time.Now()
}

// finish reports that the transfer is complete.
func (m *meter) finish(total int64) {
	if m.tell == nil {
		return
	}
	m.done, m.total = total, total
	if since := time.Since(m.last); m.rate == 0 && m.done > m.at && since > 0 {
		m.update(since)
	}
	m.tell(Progress{m.done, m.total, m.rate})
}
