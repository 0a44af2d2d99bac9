package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Read returns up to n entries, the last one first: those before a sequence, or the latest ones if
// it is 0. It reads them from the end of the file and, for entries before another one, some lines
// on the way there, so that its cost does not grow with the file. It fails if one of the entries
// was changed, also with a new hash, or one between them is missing.
func (l *Log) Read(before uint64, n int) ([]Entry, error) {
	l.mu.Lock()
	size, last, hash := l.size, l.sequence, l.last
	l.mu.Unlock()
	n = min(max(n, 0), MaxRead)
	if n == 0 || last == 0 || before == 1 {
		return []Entry{}, nil
	}
	f, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	defer f.Close()
	end, next := size, last
	if before > 0 && before <= last {
		next = before - 1
		if end, hash, err = startOf(f, size, before); err != nil {
			return nil, fmt.Errorf("the audit log: %w", err)
		}
	}
	list, err := backwards(f, end, next, hash, n)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	return list, nil
}

// startOf returns where the line of an entry begins in a file of a size, and the hash of the entry
// before it. The numbers of entries grow, so that half of what is left can be ruled out with each
// line that is read.
func startOf(f io.ReaderAt, size int64, sequence uint64) (begin int64, before string, err error) {
	low, high := int64(0), size // the line begins in [low, high), which are beginnings of lines
	for low < high {
		at, err := lineAround(f, low+(high-low)/2, size)
		if err != nil {
			return 0, "", err
		}
		e, err := parse(at.line)
		switch {
		case err != nil:
			return 0, "", fmt.Errorf("the line at byte %d is no entry: %w", at.begin, err)
		case e.Sequence == sequence:
			return at.begin, e.Before, nil
		case e.Sequence < sequence:
			low = at.begin + int64(len(at.line))
		default:
			high = at.begin
		}
	}
	return 0, "", fmt.Errorf("entry %d is missing", sequence)
}

// placed is a line and where it begins.
type placed struct {
	begin int64
	line  []byte
}

// lineAround returns the line with a byte of a file of a size.
func lineAround(f io.ReaderAt, at, size int64) (placed, error) {
	from := max(at-maxLine, 0)
	data := make([]byte, min(at+maxLine, size)-from)
	if _, err := f.ReadAt(data, from); err != nil {
		return placed{}, err
	}
	begin := bytes.LastIndexByte(data[:at-from], '\n') + 1
	end := bytes.IndexByte(data[at-from:], '\n')
	if begin == 0 && from > 0 || end < 0 {
		return placed{}, tooLong(at)
	}
	return placed{from + int64(begin), data[begin : int(at-from)+end+1]}, nil
}

func tooLong(at int64) error {
	return fmt.Errorf("the line at byte %d is longer than %d bytes: it is no entry", at, maxLine)
}

// backwards returns up to n entries of the lines that end at a place in a file, the last one first.
// It has the sequence and the hash of that one.
func backwards(f io.ReaderAt, end int64, sequence uint64, hash string, n int) (list []Entry, err error) {
	var rest []byte // the end of a line whose beginning was not read yet
	for list = []Entry{}; end > 0 && len(list) < n; {
		begin := max(end-maxLine, 0)
		data := make([]byte, end-begin, int(end-begin)+len(rest))
		if _, err := f.ReadAt(data, begin); err != nil {
			return nil, err
		}
		data, end = append(data, rest...), begin
		for len(data) > 0 && len(list) < n {
			from := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
			if from == 0 && begin > 0 {
				break // the line may begin before
			}
			e, err := parse(data[from:])
			switch {
			case err != nil:
				return nil, fmt.Errorf("the line at byte %d is no entry: %w", begin+int64(from), err)
			case e.Sequence != sequence:
				return nil, fmt.Errorf("there is entry %d in the place of entry %d: entries are missing, or were moved", e.Sequence, sequence)
			case e.Hash != e.hash():
				return nil, fmt.Errorf("entry %d was changed", sequence)
			case e.Hash != hash:
				return nil, fmt.Errorf("entry %d was changed or replaced", sequence)
			}
			list, sequence, hash, data = append(list, e), sequence-1, e.Before, data[:from]
		}
		if rest = slices.Clone(data); len(rest) > maxLine {
			return nil, tooLong(begin)
		}
	}
	if end == 0 && len(list) < n && sequence > 0 {
		return nil, errors.New("the first entries are missing")
	}
	return list, nil
}
