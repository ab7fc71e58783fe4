<?php
// Installs WordPress, and uses it as a site does: posts, tags, comments, users, searches. Prints what it finds. It runs in
// a folder in which WordPress is, with the database in the environment.
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', getenv('FARMSQL_DB_HOST'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', true);
define('WP_SITEURL', 'http://localhost');
define('WP_HOME', 'http://localhost');
define('WP_INSTALLING', true);
define('ABSPATH', getcwd() . '/');
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $key) {
	define($key, 'x');
}
$_SERVER += ['HTTP_HOST' => 'localhost', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1'];
$table_prefix = 'wp_';
require ABSPATH . 'wp-settings.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
global $wpdb;
$wpdb->show_errors();
function say(...$values) { echo implode(' ', $values), "\n"; }

wp_install('Blog', 'admin', 'a@example.com', true, '', 'secret');
$ids = [];
for ($i = 0; $i < 12; $i++) {
	$ids[] = wp_insert_post(['post_title' => "Post $i it's é", 'post_content' => "Text $i \"quoted\" \\ back", 'post_status' => 'publish',
		'post_author' => 1, 'post_category' => [1], 'tags_input' => ['t' . ($i % 3), 'all'], 'post_date' => sprintf('2024-03-%02d 10:00:00', $i + 1)]);
}
foreach ($ids as $i => $id) {
	add_post_meta($id, 'rank', $i % 7);
	wp_insert_comment(['comment_post_ID' => $id, 'comment_content' => 'Nice', 'comment_author' => 'Bob']);
}
$q = new WP_Query(['meta_key' => 'rank', 'orderby' => ['meta_value_num' => 'DESC', 'ID' => 'ASC'], 'posts_per_page' => 5, 'tag' => 't1']);
foreach ($q->posts as $p) {
	say($p->ID, $p->post_title);
}
say($q->found_posts);
$q = new WP_Query(['s' => "it's", 'posts_per_page' => 3, 'paged' => 2]);
say($q->found_posts, count($q->posts));
$q = new WP_Query(['tax_query' => [['taxonomy' => 'post_tag', 'field' => 'slug', 'terms' => ['t2'], 'operator' => 'NOT IN']], 'date_query' => [['after' => '2024-03-04']],
	'meta_query' => [['key' => 'rank', 'value' => [2, 5], 'compare' => 'BETWEEN', 'type' => 'NUMERIC']]]);
say($q->found_posts);
foreach (get_terms(['taxonomy' => 'post_tag', 'orderby' => 'count', 'hide_empty' => false]) as $t) {
	say($t->name, $t->count);
}
wp_update_post(['ID' => $ids[3], 'post_title' => 'Changed']);
wp_delete_post($ids[4], true);
wp_trash_post($ids[5]);
say(wp_count_posts()->publish, wp_count_posts()->trash, get_comments(['count' => true]));
$u = wp_insert_user(['user_login' => 'bob', 'user_pass' => 'x', 'user_email' => 'b@example.com', 'role' => 'editor']);
say(is_wp_error($u) ? $u->get_error_message() : $u);
say((new WP_User_Query(['role' => 'editor', 'search' => '*bo*']))->get_total());
say(wp_get_archives(['echo' => 0, 'type' => 'monthly', 'show_post_count' => 1]));
set_transient('x', ['a' => 1], 60);
say(json_encode(get_transient('x')));
delete_expired_transients(true);
say('last error:', $wpdb->last_error);
