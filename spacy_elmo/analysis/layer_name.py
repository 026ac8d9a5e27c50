"""How a layer of the language model is called in tables and charts."""


def layer_name(layer: int) -> str:
    """RETURNS (str): The name of a layer, where 0 is the token layer."""
    return f"LSTM layer {layer}" if layer else "token layer"
