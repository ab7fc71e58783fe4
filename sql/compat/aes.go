package compat

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server has no AES_ENCRYPT and AES_DECRYPT. Here they use the default of
// block_encryption_mode: AES-128 in ECB mode with PKCS #7 padding.

func init() {
	registerScalars(
		&scalar{"aes_encrypt", 2, 2, always(types.LongBlob), aesEncrypted},
		&scalar{"aes_decrypt", 2, 2, always(types.LongBlob), aesDecrypted})
}

// aesEncrypted computes AES_ENCRYPT.
func aesEncrypted(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	text, block, err := aesOperands(ctx, c, v)
	if err != nil {
		return nil, err
	}
	padding := aes.BlockSize - len(text)%aes.BlockSize
	out := append(bytes.Clone(text), bytes.Repeat([]byte{byte(padding)}, padding)...)
	for at := 0; at < len(out); at += aes.BlockSize {
		block.Encrypt(out[at:], out[at:])
	}
	return out, nil
}

// aesDecrypted computes AES_DECRYPT. It returns NULL unless the text consists of whole blocks that end
// with valid padding: a wrong key hardly ever decrypts to that.
func aesDecrypted(ctx *gms.Context, c *scalarCall, v gms.Row) (any, error) {
	text, block, err := aesOperands(ctx, c, v)
	if err != nil || len(text) == 0 || len(text)%aes.BlockSize != 0 {
		return nil, err
	}
	out := make([]byte, len(text))
	for at := 0; at < len(out); at += aes.BlockSize {
		block.Decrypt(out[at:], text[at:])
	}
	padding := int(out[len(out)-1])
	if padding == 0 || padding > aes.BlockSize || !bytes.HasSuffix(out, bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, nil
	}
	return out[:len(out)-padding], nil
}

// aesOperands returns the text of the first argument, and the cipher of the second. A key is folded
// into 128 bits.
func aesOperands(ctx *gms.Context, c *scalarCall, v gms.Row) ([]byte, cipher.Block, error) {
	text, err := c.bytesOf(ctx, v, 0)
	if err != nil {
		return nil, nil, err
	}
	key, err := c.bytesOf(ctx, v, 1)
	if err != nil {
		return nil, nil, err
	}
	var folded [16]byte
	for i, b := range key {
		folded[i%len(folded)] ^= b
	}
	block, err := aes.NewCipher(folded[:])
	return text, block, err
}

// bytesOf returns the value of an argument as a text.
func (c *scalarCall) bytesOf(ctx *gms.Context, v gms.Row, at int) ([]byte, error) {
	switch v := v[at].(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	text, err := c.ChildExpressions[at].Type(ctx).SQL(ctx, nil, v[at])
	return text.ToBytes(), err
}
