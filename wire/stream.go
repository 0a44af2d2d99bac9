package wire

import "encoding/binary"

// AppendDataHead appends the header and the fixed part of a DATA frame; the caller appends the
// payload next and then stores its length with [PutLength]. The only flag is FlagMore.
func AppendDataHead(dst []byte, id uint64, flags Flags, codec, compression uint8) []byte {
	dst = AppendHeader(dst, Header{Length: DataSize, Type: TypeData, Flags: flags & FlagMore, ID: id})
	return append(dst, codec, compression)
}

// ParseData parses the body of a DATA frame. The payload aliases body.
func ParseData(body []byte) (codec, compression uint8, payload []byte, err error) {
	if len(body) < DataSize {
		return 0, 0, nil, Errorf(BadFrame, "DATA frame of %d bytes, want at least %d", len(body), DataSize)
	}
	return body[0], body[1], body[DataSize:], nil
}

// AppendEnd appends an END frame. FlagMetadata follows from the metadata, a block with its length
// field or none: the reply's trailers when a callee ends the stream.
func AppendEnd(dst []byte, id uint64, metadata []byte) []byte {
	dst = AppendHeader(dst, Header{
		Length: uint32(len(metadata)), Type: TypeEnd, Flags: bodyFlags(0, metadata), ID: id,
	})
	return append(dst, metadata...)
}

// ParseEnd parses the body of an END frame: a metadata block, which aliases body, or nothing.
func ParseEnd(flags Flags, body []byte) (metadata []byte, err error) {
	metadata, rest, err := splitMetadata(flags, body)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, Errorf(BadFrame, "END frame with %d bytes after its trailers", len(rest))
	}
	return metadata, nil
}

// AppendWindow appends a WINDOW frame that returns credit, in bytes of DATA bodies and from 1 to
// MaxWindow, for the stream id, or for the connection with id 0.
func AppendWindow(dst []byte, id uint64, credit uint32) []byte {
	dst = AppendHeader(dst, Header{Length: WindowSize, Type: TypeWindow, ID: id})
	return binary.LittleEndian.AppendUint32(dst, credit)
}

// ParseWindow parses the body of a WINDOW frame for the id. A credit of 0 fails the stream with a
// [*CallError], or with id 0 the connection. The caller must check that the sum of all credit does
// not exceed MaxWindow.
func ParseWindow(id uint64, body []byte) (credit uint32, err error) {
	if len(body) != WindowSize {
		return 0, Errorf(BadFrame, "WINDOW frame of %d bytes, want %d", len(body), WindowSize)
	}
	credit = binary.LittleEndian.Uint32(body)
	switch {
	case credit > MaxWindow:
		return 0, Errorf(FlowControl, "WINDOW of %d bytes is out of range, at most %d", credit, uint32(MaxWindow))
	case credit == 0 && id == 0:
		return 0, Errorf(FlowControl, "WINDOW of 0 bytes for the connection, want at least 1")
	case credit == 0:
		return 0, callErrorf(InvalidArgument, "WINDOW of 0 bytes, want at least 1")
	}
	return credit, nil
}
