"""Conversations, and the items in them."""

import openai

from test_server import Check


class Conversations(Check):
    def test_a_conversation_collects_the_items_of_its_responses(self):
        conversation = self.client.conversations.create(metadata={"a": "b"})

        response = self.create(input="Hello!", conversation=conversation.id)

        self.assertEqual(response.conversation.id, conversation.id)
        items = list(self.client.conversations.items.list(conversation.id, order="asc"))
        self.assertEqual([it.role for it in items], ["user", "assistant"])
        self.assertEqual(items[1].content[0].text, response.output_text)

    def test_a_conversation_begins_with_its_initial_items(self):
        rule = {"type": "message", "role": "developer", "content": "Be brief."}

        conversation = self.client.conversations.create(items=[rule])

        items = list(self.client.conversations.items.list(conversation.id))
        self.assertEqual([it.role for it in items], ["developer"])

    def test_an_item_is_added_retrieved_and_deleted(self):
        conversation = self.client.conversations.create()
        item = {"type": "message", "role": "user", "content": "Remember the lighthouse."}

        added = self.client.conversations.items.create(conversation.id, items=[item]).data[0]
        found = self.client.conversations.items.retrieve(added.id, conversation_id=conversation.id)
        self.client.conversations.items.delete(added.id, conversation_id=conversation.id)

        self.assertEqual(found.content[0].text, "Remember the lighthouse.")
        self.assertEqual(list(self.client.conversations.items.list(conversation.id)), [])

    def test_a_conversation_is_updated_and_deleted(self):
        conversation = self.client.conversations.create()

        changed = self.client.conversations.update(conversation.id, metadata={"c": "d"})
        self.client.conversations.delete(conversation.id)

        self.assertEqual(changed.metadata, {"c": "d"})
        with self.assertRaises(openai.NotFoundError):
            self.client.conversations.retrieve(conversation.id)
