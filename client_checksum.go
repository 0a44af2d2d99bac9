package anser

// trySealed is socket.try with checksums. Of what it has taken the sealer may hold a part.
func (c *clientConn) trySealed(frames []byte) (taken int, err error) {
	for {
		out, used := c.checksums.rest(frames[taken:])
		taken += used
		if len(out) == 0 {
			return taken, nil
		}
		n, err := c.socket.TryWrite(out)
		c.checksums.took(n)
		if err != nil || n < len(out) {
			return taken, err
		}
	}
}
