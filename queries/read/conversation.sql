-- name: ConversationByID :one
SELECT * FROM conversation WHERE id = @id;

-- name: MessageOfConversation :many
SELECT * FROM message WHERE conversation_id = @conversation_id ORDER BY version LIMIT @lim;
