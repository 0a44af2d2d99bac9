package wire

// Sizes of PART frames, in bytes of their bodies, and of the frames that they carry.
const (
	MinParted    = 64<<10 + 1 // body of the shortest frame that is sent in PARTs
	MinFirstPart = 64
	MaxFirstPart = 64 << 10
	MinPart      = 1 << 10 // of a PART between the first one and the last one
)

// FeatureParts is the bit of Settings.Features by which a side announces that it takes frames in
// PARTs.
const FeatureParts = 1 << 3

// AppendPartHead appends the header of a PART of the frame with the id; the caller appends length
// bytes of the frame next.
func AppendPartHead(dst []byte, id uint64, length uint32) []byte {
	return AppendHeader(dst, Header{Length: length, Type: TypePart, ID: id})
}

// Parts is the state of a frame that arrives in PARTs.
type Parts struct {
	Head Header // of the frame
	Left int    // bytes of the frame that are not in the PARTs so far
}

// BeginParts returns the state after the first PART, which has the header h. The frame is a REQUEST
// or REPLY of a unary call. The caller must limit its length, and check the flags and the id as
// those of any frame of its type.
func BeginParts(h Header, body []byte) (Parts, error) {
	if err := CheckFirstPart(len(body)); err != nil {
		return Parts{}, err
	}
	head, err := ParseHeader(body)
	switch {
	case err != nil:
		return Parts{}, err
	case head.Type != TypeRequest && head.Type != TypeReply:
		return Parts{}, Errorf(BadFrame, "%s frame in PARTs, want REQUEST or REPLY", head.Type)
	case head.Type == TypeRequest && head.Flags&FlagStream != 0:
		return Parts{}, Errorf(BadFrame, "REQUEST of a stream in PARTs")
	case head.ID != h.ID:
		return Parts{}, Errorf(BadID, "PART with id %d of the %s with id %d", h.ID, head.Type, head.ID)
	case head.Length < MinParted:
		return Parts{}, Errorf(BadFrame, "%s frame of %d bytes in PARTs, want at least %d", head.Type, head.Length, MinParted)
	}
	return Parts{Head: head, Left: HeaderSize + int(head.Length) - len(body)}, nil
}

// CheckFirstPart returns an error if the body of the first PART of a frame cannot have the length.
func CheckFirstPart(length int) error {
	if length < MinFirstPart || length > MaxFirstPart {
		return Errorf(BadFrame, "first PART of a frame with %d bytes, want %d to %d", length, MinFirstPart, MaxFirstPart)
	}
	return nil
}

// Next checks a further PART with the id and a body of length bytes, and counts it. A PART without
// a body ends the frame early.
func (p *Parts) Next(id uint64, length int) (early bool, err error) {
	switch {
	case id != p.Head.ID:
		return false, Errorf(BadID, "PART with id %d in the middle of the %s with id %d", id, p.Head.Type, p.Head.ID)
	case length > p.Left:
		return false, Errorf(BadFrame, "PART of %d bytes, %d of the %s are left", length, p.Left, p.Head.Type)
	case length != 0 && length < MinPart && length != p.Left:
		return false, Errorf(BadFrame, "PART of %d bytes in the middle of the %s, want at least %d", length, p.Head.Type, MinPart)
	}
	p.Left -= length
	return length == 0, nil
}
