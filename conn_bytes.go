package anser

import "encoding/binary"

func putUint32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func getUint32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func getUint64(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }
func putUint64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }
