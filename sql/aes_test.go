package sql

import "testing"

// The results are MariaDB's.
func TestAES(t *testing.T) {
	for query, want := range map[string]string{
		"select hex(aes_encrypt('text', 'key')), hex(aes_encrypt('', 'key')), hex(aes_encrypt('0123456789abcdef', 'a key of more than sixteen bytes'))": "15E36637363712FC2E699B9C95B75393 | C717530F41F320757B4AA1BFAF11C42E | 565AA1D626DD67D9461FC3BE63C90E681F03973AE7B867D6D9FFB10B4931AB41\n",
		"select cast(aes_decrypt(aes_encrypt('text', 'key'), 'key') as char), cast(aes_decrypt(aes_encrypt(12.50, 7), '7') as char)":                    "text | 12.50\n",
		"select aes_decrypt('x', 'key'), aes_decrypt(aes_encrypt('text', 'key'), 'other'), aes_decrypt('', 'key')":                                      "NULL | NULL | NULL\n",
		"select aes_encrypt(null, 'k'), aes_encrypt('t', null), aes_decrypt(null, 'k')":                                                                 "NULL | NULL | NULL\n",
		"select aes_encrypt('t')": "error 1582",
	} {
		shows{"", query, want}.testTwice(t)
	}
	const table = "create table t (id int primary key, secret varbinary(64)); insert into t values (1, aes_encrypt('one', 'k')), (2, aes_encrypt('two', 'k'))"
	shows{table, "select id, cast(aes_decrypt(secret, 'k') as char) from t where aes_decrypt(secret, 'k') = 'two'", "2 | two\n"}.testTwice(t)
}
