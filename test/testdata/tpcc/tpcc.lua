-- TPC-C as sysbench-tpcc runs it: text statements, FOR UPDATE, foreign keys, one row a statement.
-- Commands: prepare, run and check; check looks at conditions 1 to 4 of TPC-C's clause 3.3.2.

sysbench.cmdline.options = {
   scale = {"Warehouses", 1},
   items = {"Items", 200},
   customers = {"Customers of a district", 30},
}

local DISTRICTS = 10
local SYLLABLES = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

local function opt() return sysbench.opt end
local function rand(low, high) return sysbench.rand.uniform(low, high) end
local function last_name(n)
   return SYLLABLES[math.floor(n / 100) % 10 + 1] .. SYLLABLES[math.floor(n / 10) % 10 + 1] .. SYLLABLES[n % 10 + 1]
end

local TABLES = {
   [[CREATE TABLE warehouse1 (w_id smallint not null, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20),
     w_city varchar(20), w_state char(2), w_zip char(9), w_tax decimal(4,2), w_ytd decimal(12,2), primary key (w_id))]],
   [[CREATE TABLE district1 (d_id tinyint not null, d_w_id smallint not null, d_name varchar(10), d_street_1 varchar(20),
     d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax decimal(4,2), d_ytd decimal(12,2),
     d_next_o_id int, primary key (d_w_id, d_id))]],
   [[CREATE TABLE customer1 (c_id int not null, c_d_id tinyint not null, c_w_id smallint not null, c_first varchar(16),
     c_middle char(2), c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2),
     c_zip char(9), c_phone char(16), c_since datetime, c_credit char(2), c_credit_lim bigint, c_discount decimal(4,2),
     c_balance decimal(12,2), c_ytd_payment decimal(12,2), c_payment_cnt smallint, c_delivery_cnt smallint, c_data text,
     PRIMARY KEY(c_w_id, c_d_id, c_id))]],
   [[CREATE TABLE history1 (id int NOT NULL AUTO_INCREMENT, h_c_id int, h_c_d_id tinyint, h_c_w_id smallint, h_d_id tinyint,
     h_w_id smallint, h_date datetime, h_amount decimal(6,2), h_data varchar(24), PRIMARY KEY (id))]],
   [[CREATE TABLE orders1 (o_id int not null, o_d_id tinyint not null, o_w_id smallint not null, o_c_id int, o_entry_d datetime,
     o_carrier_id tinyint, o_ol_cnt tinyint, o_all_local tinyint, PRIMARY KEY(o_w_id, o_d_id, o_id))]],
   [[CREATE TABLE new_orders1 (no_o_id int not null, no_d_id tinyint not null, no_w_id smallint not null,
     PRIMARY KEY(no_w_id, no_d_id, no_o_id))]],
   [[CREATE TABLE order_line1 (ol_o_id int not null, ol_d_id tinyint not null, ol_w_id smallint not null, ol_number tinyint not null,
     ol_i_id int, ol_supply_w_id smallint, ol_delivery_d datetime, ol_quantity tinyint, ol_amount decimal(6,2), ol_dist_info char(24),
     PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number))]],
   [[CREATE TABLE item1 (i_id int not null, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), PRIMARY KEY(i_id))]],
   [[CREATE TABLE stock1 (s_i_id int not null, s_w_id smallint not null, s_quantity smallint, s_dist_01 char(24), s_dist_02 char(24),
     s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24),
     s_dist_09 char(24), s_dist_10 char(24), s_ytd decimal(8,0), s_order_cnt smallint, s_remote_cnt smallint, s_data varchar(50),
     PRIMARY KEY(s_w_id, s_i_id))]],
}

local KEYS = {
   "CREATE INDEX idx_customer1 ON customer1 (c_w_id,c_d_id,c_last,c_first)",
   "CREATE INDEX idx_orders1 ON orders1 (o_w_id,o_d_id,o_c_id,o_id)",
   "CREATE INDEX fkey_stock_21 ON stock1 (s_i_id)",
   "CREATE INDEX fkey_order_line_21 ON order_line1 (ol_supply_w_id,ol_i_id)",
   "CREATE INDEX fkey_history_11 ON history1 (h_c_w_id,h_c_d_id,h_c_id)",
   "ALTER TABLE new_orders1 ADD CONSTRAINT fkey_new_orders_1 FOREIGN KEY(no_w_id,no_d_id,no_o_id) REFERENCES orders1(o_w_id,o_d_id,o_id)",
   "ALTER TABLE orders1 ADD CONSTRAINT fkey_orders_1 FOREIGN KEY(o_w_id,o_d_id,o_c_id) REFERENCES customer1(c_w_id,c_d_id,c_id)",
   "ALTER TABLE customer1 ADD CONSTRAINT fkey_customer_1 FOREIGN KEY(c_w_id,c_d_id) REFERENCES district1(d_w_id,d_id)",
   "ALTER TABLE district1 ADD CONSTRAINT fkey_district_1 FOREIGN KEY(d_w_id) REFERENCES warehouse1(w_id)",
   "ALTER TABLE order_line1 ADD CONSTRAINT fkey_order_line_1 FOREIGN KEY(ol_w_id,ol_d_id,ol_o_id) REFERENCES orders1(o_w_id,o_d_id,o_id)",
   "ALTER TABLE order_line1 ADD CONSTRAINT fkey_order_line_2 FOREIGN KEY(ol_supply_w_id,ol_i_id) REFERENCES stock1(s_w_id,s_i_id)",
   "ALTER TABLE stock1 ADD CONSTRAINT fkey_stock_1 FOREIGN KEY(s_w_id) REFERENCES warehouse1(w_id)",
   "ALTER TABLE stock1 ADD CONSTRAINT fkey_stock_2 FOREIGN KEY(s_i_id) REFERENCES item1(i_id)",
}

local function connect()
   local con = sysbench.sql.driver():connect()
   return con
end

local function bulk(con, into, rows)
   con:bulk_insert_init("INSERT INTO " .. into .. " values")
   for _, row in ipairs(rows) do con:bulk_insert_next(row) end
   con:bulk_insert_done()
end

local function load_district(con, w, d)
   local customers, history, orders, fresh, lines = {}, {}, {}, {}, {}
   for n = 1, opt().customers do
      customers[n] = string.format("(%d, %d, %d, '%s','OE','%s','street1','street2','city','CA','123456789','1234567890123456',NOW(),'%s',50000,%f,-10.0,10.0,1,0,'%s')",
         n, d, w, sysbench.rand.string("First-@@@@@@"), last_name((n - 1) % 1000), rand(1, 10) == 1 and "BC" or "GC", rand(0, 50) / 100, string.rep("x", 100))
      history[n] = string.format("(%d, %d, %d, %d, %d, NOW(), 10, 'history')", n, d, w, d, w)
      local count, is_new = rand(5, 15), n > opt().customers * 0.7
      orders[n] = string.format("(%d, %d, %d, %d, NOW(), %s, %d, 1)", n, d, w, n, is_new and "NULL" or tostring(rand(1, 10)), count)
      if is_new then fresh[#fresh + 1] = string.format("(%d, %d, %d)", n, d, w) end
      for k = 1, count do
         lines[#lines + 1] = string.format("(%d, %d, %d, %d, %d, %d, %s, 5, %.2f, '%s')", n, d, w, k, rand(1, opt().items), w,
            is_new and "NULL" or "NOW()", is_new and rand(1, 999999) / 100 or 0, string.rep("o", 24))
      end
   end
   con:query(string.format("INSERT INTO district1 VALUES (%d, %d, 'district', 's1', 's2', 'city', 'CA', '123456789', %f, 30000, %d)", d, w, rand(0, 20) / 100, opt().customers + 1))
   bulk(con, "customer1", customers)
   bulk(con, "history1 (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)", history)
   bulk(con, "orders1", orders)
   bulk(con, "new_orders1", fresh)
   bulk(con, "order_line1", lines)
end

function cmd_prepare()
   local con = connect()
   for _, q in ipairs(TABLES) do con:query(q) end
   for _, q in ipairs(KEYS) do con:query(q) end
   local items = {}
   for i = 1, opt().items do
      items[i] = string.format("(%d, %d, 'item-%d', %f, '%s')", i, rand(1, 10000), i, rand(100, 10000) / 100, string.rep("i", 30))
   end
   bulk(con, "item1", items)
   for w = 1, opt().scale do
      con:query(string.format("INSERT INTO warehouse1 VALUES (%d, 'name', 's1', 's2', 'city', 'CA', '123456789', %f, %d)", w, rand(0, 20) / 100, 30000 * DISTRICTS))
      local stock = {}
      for i = 1, opt().items do
         stock[i] = string.format("(%d, %d, %d%s, 0, 0, 0, '%s')", i, w, rand(10, 100), string.rep(", '" .. string.rep("d", 24) .. "'", 10), string.rep("s", 30))
      end
      bulk(con, "stock1", stock)
      for d = 1, DISTRICTS do load_district(con, w, d) end
   end
end

local con

function thread_init() con = connect() end
function thread_done() con:disconnect() end
function sysbench.hooks.before_restart_event() con:query("ROLLBACK") end

local function q(...) return con:query(string.format(...)) end
local function row(...) return con:query_row(string.format(...)) end
local function place() return rand(1, opt().scale), rand(1, DISTRICTS) end

local function new_order()
   local w, d = place()
   local c, count = rand(1, opt().customers), rand(5, 15)
   local rollback = rand(1, 100) == 1
   con:query("BEGIN")
   row("SELECT c_discount, c_last, c_credit, w_tax FROM customer1, warehouse1 WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d", w, d, c)
   local order = row("SELECT d_next_o_id, d_tax FROM district1 WHERE d_w_id = %d AND d_id = %d FOR UPDATE", w, d)
   q("UPDATE district1 SET d_next_o_id = %d WHERE d_id = %d AND d_w_id= %d", order + 1, d, w)
   q("INSERT INTO orders1 (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (%d,%d,%d,%d,NOW(),%d,1)", order, d, w, c, count)
   q("INSERT INTO new_orders1 (no_o_id, no_d_id, no_w_id) VALUES (%d,%d,%d)", order, d, w)
   for k = 1, count do
      local item = rand(1, opt().items)
      if rollback and k == count then item = opt().items + 1 end
      local price = row("SELECT i_price, i_name, i_data FROM item1 WHERE i_id = %d", item)
      if price == nil then
         con:query("ROLLBACK")
         return
      end
      local quantity = row("SELECT s_quantity, s_data, s_dist_%02d s_dist FROM stock1 WHERE s_i_id = %d AND s_w_id= %d FOR UPDATE", d, item, w)
      quantity = tonumber(quantity)
      local ordered = rand(1, 10)
      quantity = quantity > ordered + 10 and quantity - ordered or quantity - ordered + 91
      q("UPDATE stock1 SET s_quantity = %d WHERE s_i_id = %d AND s_w_id= %d", quantity, item, w)
      q("INSERT INTO order_line1 (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (%d,%d,%d,%d,%d,%d,%d,%.2f,'%s')",
         order, d, w, k, item, w, ordered, math.min(ordered * price, 9999), string.rep("d", 24))
   end
   con:query("COMMIT")
end

-- by_name returns the number of the customer in the middle of those with a name.
local function by_name(w, d)
   local name = last_name(rand(0, math.min(opt().customers, 1000) - 1))
   local count = tonumber(row("SELECT count(c_id) namecnt FROM customer1 WHERE c_w_id = %d AND c_d_id= %d AND c_last='%s'", w, d, name))
   local rs = q("SELECT c_id FROM customer1 WHERE c_w_id = %d AND c_d_id= %d AND c_last='%s' ORDER BY c_first", w, d, name)
   local id
   for _ = 1, math.ceil(count / 2) do id = rs:fetch_row()[1] end
   return id
end

local function payment()
   local w, d = place()
   local amount = rand(1, 5000)
   con:query("BEGIN")
   q("UPDATE warehouse1 SET w_ytd = w_ytd + %d WHERE w_id = %d", amount, w)
   row("SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse1 WHERE w_id = %d", w)
   q("UPDATE district1 SET d_ytd = d_ytd + %d WHERE d_w_id = %d AND d_id= %d", amount, w, d)
   row("SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district1 WHERE d_w_id = %d AND d_id = %d", w, d)
   local c = rand(1, 100) <= 60 and by_name(w, d) or rand(1, opt().customers)
   local _, _, _, credit = row([[SELECT c_first, c_middle, c_last, c_credit, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit_lim,
      c_discount, c_balance, c_ytd_payment, c_since FROM customer1 WHERE c_w_id = %d AND c_d_id= %d AND c_id=%d FOR UPDATE]], w, d, c)
   if credit == "BC" then
      row("SELECT c_data FROM customer1 WHERE c_w_id = %d AND c_d_id=%d AND c_id= %d", w, d, c)
      q("UPDATE customer1 SET c_balance=c_balance - %d, c_ytd_payment=c_ytd_payment + %d, c_data='%s' WHERE c_w_id = %d AND c_d_id=%d AND c_id=%d",
         amount, amount, string.format("| %4d %2d %4d %2d %4d $%7d", c, d, w, d, w, amount), w, d, c)
   else
      q("UPDATE customer1 SET c_balance=c_balance - %d, c_ytd_payment=c_ytd_payment + %d WHERE c_w_id = %d AND c_d_id=%d AND c_id=%d", amount, amount, w, d, c)
   end
   q("INSERT INTO history1 (h_c_d_id, h_c_w_id, h_c_id, h_d_id,  h_w_id, h_date, h_amount, h_data) VALUES (%d,%d,%d,%d,%d,NOW(),%d,'%s')", d, w, c, d, w, amount, "name    name")
   con:query("COMMIT")
end

local function order_status()
   local w, d = place()
   con:query("BEGIN")
   local c = rand(1, 100) <= 60 and by_name(w, d) or rand(1, opt().customers)
   row("SELECT c_balance, c_first, c_middle, c_last FROM customer1 WHERE c_w_id = %d AND c_d_id=%d AND c_id=%d", w, d, c)
   local order = row("SELECT o_id, o_carrier_id, o_entry_d FROM orders1 WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1", w, d, c)
   if order ~= nil then
      q("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line1 WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d", w, d, order)
   end
   con:query("COMMIT")
end

local function delivery()
   local w, carrier = rand(1, opt().scale), rand(1, 10)
   con:query("BEGIN")
   for d = 1, DISTRICTS do
      local rs = q("SELECT no_o_id FROM new_orders1 WHERE no_d_id = %d AND no_w_id = %d ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE", d, w)
      if rs.nrows > 0 then
         local order = rs:fetch_row()[1]
         q("DELETE FROM new_orders1 WHERE no_o_id = %d AND no_d_id = %d  AND no_w_id = %d", order, d, w)
         local c = row("SELECT o_c_id FROM orders1 WHERE o_id = %d AND o_d_id = %d AND o_w_id = %d", order, d, w)
         q("UPDATE orders1 SET o_carrier_id = %d WHERE o_id = %d AND o_d_id = %d AND o_w_id = %d", carrier, order, d, w)
         q("UPDATE order_line1 SET ol_delivery_d = NOW() WHERE ol_o_id = %d AND ol_d_id = %d AND ol_w_id = %d", order, d, w)
         local sum = row("SELECT SUM(ol_amount) sm FROM order_line1 WHERE ol_o_id = %d AND ol_d_id = %d AND ol_w_id = %d", order, d, w)
         q("UPDATE customer1 SET c_balance = c_balance + %f, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = %d AND c_d_id = %d AND c_w_id = %d", sum, c, d, w)
      end
   end
   con:query("COMMIT")
end

local function stock_level()
   local w, d = place()
   local level = rand(10, 20)
   con:query("BEGIN")
   local order = row("SELECT d_next_o_id FROM district1 WHERE d_id = %d AND d_w_id= %d", d, w)
   row([[SELECT COUNT(DISTINCT(s_i_id)) FROM order_line1, stock1 WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d
      AND ol_o_id >= %d AND s_w_id= %d AND s_i_id=ol_i_id AND s_quantity < %d]], w, d, order, order - 20, w, level)
   local rs = q("SELECT DISTINCT ol_i_id FROM order_line1 WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d AND ol_o_id >= %d", w, d, order, order - 20)
   local items = {} -- the next query frees the result
   for i = 1, rs.nrows do items[i] = rs:fetch_row()[1] end
   for _, item in ipairs(items) do
      row("SELECT count(*) FROM stock1 WHERE s_w_id = %d AND s_i_id = %d AND s_quantity < %d", w, item, level)
   end
   con:query("COMMIT")
end

function event()
   local kind = rand(1, 23)
   if kind <= 10 then new_order()
   elseif kind <= 20 then payment()
   elseif kind <= 21 then order_status()
   elseif kind <= 22 then delivery()
   else stock_level() end
end

local CONDITIONS = {
   ["3.3.2.1"] = "SELECT COUNT(*) FROM (SELECT w_id, w_ytd, SUM(d_ytd) s FROM warehouse1, district1 WHERE d_w_id = w_id GROUP BY w_id, w_ytd) x WHERE w_ytd <> s",
   ["3.3.2.2"] = [[SELECT COUNT(*) FROM district1 WHERE d_next_o_id - 1 <> (SELECT MAX(o_id) FROM orders1 WHERE o_w_id = d_w_id AND o_d_id = d_id)
      OR d_next_o_id - 1 <> COALESCE((SELECT MAX(no_o_id) FROM new_orders1 WHERE no_w_id = d_w_id AND no_d_id = d_id), d_next_o_id - 1)]],
   ["3.3.2.3"] = "SELECT COUNT(*) FROM (SELECT MAX(no_o_id) - MIN(no_o_id) + 1 span, COUNT(*) n FROM new_orders1 GROUP BY no_w_id, no_d_id) x WHERE span <> n",
   ["3.3.2.4"] = [[SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) s FROM orders1 GROUP BY o_w_id, o_d_id) x
      WHERE s <> (SELECT COUNT(*) FROM order_line1 WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id)]],
}

function cmd_check()
   local con = connect()
   for clause, query in pairs(CONDITIONS) do
      if tonumber(con:query_row(query)) ~= 0 then error("condition " .. clause .. " does not hold") end
   end
end

sysbench.cmdline.commands = {prepare = {cmd_prepare}, check = {cmd_check}}
