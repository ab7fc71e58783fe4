package tpcc

// schemaName is the name of the benchmark's database.
const schemaName = "tpcc"

// schema creates the nine tables (clause 1.3) and the indexes that the transactions need
// beyond primary keys. Foreign keys are not required, and left out.
var schema = []string{
	`CREATE TABLE warehouse (
		w_id INT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), w_city VARCHAR(20),
		w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2),
		PRIMARY KEY (w_id))`,
	`CREATE TABLE district (
		d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20), d_city VARCHAR(20),
		d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT,
		PRIMARY KEY (d_w_id, d_id))`,
	`CREATE TABLE customer (
		c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) COLLATE utf8mb4_bin, c_middle CHAR(2),
		c_last VARCHAR(16) COLLATE utf8mb4_bin,
		c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16),
		c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2),
		c_ytd_payment DECIMAL(12,2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500),
		PRIMARY KEY (c_w_id, c_d_id, c_id), KEY customer_last (c_w_id, c_d_id, c_last, c_first))`,
	`CREATE TABLE history (
		h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24))`,
	`CREATE TABLE new_order (
		no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL,
		PRIMARY KEY (no_w_id, no_d_id, no_o_id))`,
	`CREATE TABLE orders (
		o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT, o_entry_d DATETIME, o_carrier_id INT,
		o_ol_cnt INT, o_all_local INT,
		PRIMARY KEY (o_w_id, o_d_id, o_id), KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id))`,
	`CREATE TABLE order_line (
		ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT, ol_supply_w_id INT,
		ol_delivery_d DATETIME, ol_quantity INT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24),
		PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))`,
	`CREATE TABLE item (
		i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50),
		PRIMARY KEY (i_id))`,
	`CREATE TABLE stock (
		s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT, s_dist_01 CHAR(24), s_dist_02 CHAR(24), s_dist_03 CHAR(24),
		s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24),
		s_dist_10 CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50),
		PRIMARY KEY (s_w_id, s_i_id))`,
}

// A statement is an index into a client's prepared statements. A SELECT locks its rows (FOR UPDATE)
// if the transaction changes them afterwards. For servers with snapshots, it also does so if
// another transaction may have added the rows since the snapshot.
type statement int

const (
	getWarehouseTax statement = iota
	getDistrictTax
	takeOrderNumber
	getCustomerTerms
	addOrder
	addNewOrder
	getItem
	changeStock
	addLine

	payWarehouse
	getWarehouse
	payDistrict
	getDistrict
	findCustomers
	getCredit
	payCustomer
	payBadCustomer
	addHistory

	getBalance
	getLastOrder
	getLines

	getOldest
	removeNewOrder
	getOrderCustomer
	setCarrier
	setDelivered
	sumLines
	deliverToCustomer

	getNextOrder
	countLow

	getStock   // the first of the statements stockOf, one for each district
	statements = getStock + districts
)

var statementTexts = [getStock]string{
	getWarehouseTax:  "SELECT w_tax FROM warehouse WHERE w_id = ?",
	getDistrictTax:   "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
	takeOrderNumber:  "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
	getCustomerTerms: "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
	addOrder: `INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
	addNewOrder: "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
	getItem:     "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
	changeStock: `UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ?
		WHERE s_w_id = ? AND s_i_id = ?`,
	addLine: `INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,

	payWarehouse:  "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
	getWarehouse:  "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
	payDistrict:   "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
	getDistrict:   "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?",
	findCustomers: `SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first`,
	getCredit:     "SELECT c_balance, c_credit, c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
	payCustomer: `UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1
		WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?`,
	payBadCustomer: `UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ?
		WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?`,
	addHistory: `INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,

	getBalance:   "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
	getLastOrder: "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
	getLines: `SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
		WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?`,

	getOldest:        "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
	removeNewOrder:   "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
	getOrderCustomer: "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE",
	setCarrier:       "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
	setDelivered:     "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
	sumLines:         "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
	deliverToCustomer: `UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1
		WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?`,

	getNextOrder: "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
	countLow: `SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
		WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?`,
}

// text returns the statement's text.
func (s statement) text() string {
	if s < getStock {
		return statementTexts[s]
	}
	d := int(s-getStock) + 1
	return "SELECT s_quantity, s_data, s_dist_" + string([]byte{'0' + byte(d/10), '0' + byte(d%10)}) +
		" FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
}

// stockOf returns the statement that reads a stock for an order of the district.
func stockOf(district int) statement { return getStock + statement(district-1) }
