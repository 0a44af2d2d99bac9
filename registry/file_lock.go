package registry

import (
	"context"
	"fmt"
	"time"
)

// lockFile waits for the lock at path, which serializes the processes that change the same
// registry file, and returns the function that releases it. It polls, so that ctx can end the
// wait.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 25*time.Millisecond) {
		unlock, err := tryLockFile(path)
		if err != nil {
			return nil, fmt.Errorf("lock of the registry file: %w", err)
		}
		if unlock != nil {
			return unlock, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process holds the lock %s%s: %w", path, staleLockAdvice, ctx.Err())
		case <-time.After(wait):
		}
	}
}
